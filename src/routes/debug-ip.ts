import { z } from 'zod';
import type { Operation } from '../http/openapi.js';
import type { IncomingHttpHeaders } from 'node:http';
import { BYPASS_SECONDS } from '../http/bypass-token.js';
import type { RequestLimit } from '../http/limits.js';
import type { Handler } from './handler.js';

/** Headers whose values are nobody's business, not even the sender's on a shared screen. */
const REDACTED = /authorization|cookie|token|secret|api-?key/i;

/** A header such as `Referer` may hold the address of another request. */
const SECRET_IN_URL = /[?&;](secret|token|key|password)=/i;

const address = z.union([z.ipv4(), z.ipv6()]);

export const debugIpOperation: Operation = {
  summary: 'As whom a client is limited, and why',
  answers: {
    200: {
      description: 'What the service knows of the client. Values that may hold a secret are not shown.',
      schema: z.strictObject({
        ip: address,
        peer: address,
        forwarded_for: z.array(z.string()),
        forwarded_for_believed: z.array(address),
        limit_key: z.string(),
        limit: z
          .strictObject({
            limit: z.int().min(1),
            remaining: z.int().nonnegative(),
            reset_seconds: z.int().nonnegative(),
          })
          .nullable(),
        bypass: z.strictObject({ valid: z.boolean(), valid_for_seconds: z.int().min(0).max(BYPASS_SECONDS) }),
        headers: z.record(z.string(), z.union([z.string(), z.array(z.string())])),
      }),
      example: {
        ip: '203.0.113.5',
        peer: '10.0.0.1',
        forwarded_for: ['198.51.100.1', '203.0.113.5'],
        forwarded_for_believed: ['203.0.113.5'],
        limit_key: '203.0.113.5',
        limit: { limit: 120, remaining: 117, reset_seconds: 60 },
        bypass: { valid: false, valid_for_seconds: 0 },
        headers: { host: 'api.example', accept: '*/*' },
      },
    },
  },
  problems: [],
};

/** `GET /debug-ip`: as whom a user is limited, and why. */
export function debugIp(reading: RequestLimit): Handler {
  return async (ctx) => {
    const { address, bypassSecondsLeft } = ctx.state.client;
    const { ip, peer, forwardedFor, believed, key } = address;
    ctx.set('Cache-Control', 'no-store');
    ctx.body = {
      ip,
      peer,
      forwarded_for: forwardedFor,
      forwarded_for_believed: believed,
      limit_key: key,
      limit: await reading.usage(key),
      bypass: { valid: bypassSecondsLeft > 0, valid_for_seconds: bypassSecondsLeft },
      headers: redact(ctx.headers),
    };
  };
}

function redact(headers: IncomingHttpHeaders): Record<string, unknown> {
  const shown = Object.entries(headers).map(([name, value]) => [
    name,
    REDACTED.test(name) || SECRET_IN_URL.test(String(value)) ? '[redacted]' : value,
  ]);
  return Object.fromEntries(shown) as Record<string, unknown>;
}
