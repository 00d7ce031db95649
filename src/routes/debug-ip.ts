import * as z from 'zod';
import type { Operation } from '../http/openapi/document.js';
import { component } from '../http/openapi/components.js';
import type { IncomingHttpHeaders } from 'node:http';
import { addressOf } from '../http/request/client-address.js';
import { BYPASS_SECONDS } from '../http/auth/bypass-token.js';
import type { RateLimit } from '../http/limits/rate-limit.js';
import type { Handler } from '../http/request/request-context.js';
import { jsonResponse, NO_STORE } from '../http/response/response.js';

/**
 * Headers whose values are shown. In all other headers, only lists of IP addresses are shown: each edge network has its
 * own header for the client address. All other values are redacted: they may be session ids or user names.
 */
const SHOWN =
  /^(?:accept(?:-encoding|-language)?|connection|forwarded|host|user-agent|via|x-(?:original-)?forwarded-(?:for|host|port|proto)|x-request-id)$/;

const REDACTED = '[redacted]';

/** A query string in a header. It may be of another request, with a secret under any name and in any encoding. */
const QUERY = /(\?|%3f)\S*/gi;

const costsSchema = z
  .record(
    z.string(),
    component('RequestCost', {
      points: z.int().nonnegative(),
      per_names: z.int().min(1).optional(),
      with_like: z.int().min(1).optional(),
    }),
  )
  .meta({
    description:
      'Points of `limit` that a request costs, by path: with `per_names`, as many names together, rounded up; with `like`, ' +
      '`with_like`. Never more than the whole limit.',
  });

/** The costs of all endpoints, by path. */
export type ShownCosts = z.output<typeof costsSchema>;

const address = z.union([z.ipv4(), z.ipv6()]);

export const debugIpOperation: Operation = {
  id: 'getClient',
  tag: 'Access',
  summary: 'How the client is identified for rate limits, and why',
  description: 'Has a limit of its own, so that a client over the other limit can see why.',
  response: {
    description:
      'The client as the service sees it. Only headers that show how the request arrived keep their ' +
      'values; all other values and all query strings are `[redacted]`.',
    schema: component('ClientInfo', {
      ip: address,
      peer: address,
      forwarded_for: z.array(z.string()),
      forwarded_for_believed: z.array(address),
      limit_key: z.string(),
      limit: component('ClientLimit', {
        limit: z.int().min(1),
        remaining: z.int().nonnegative(),
        reset_seconds: z.int().nonnegative(),
      }).nullable(),
      costs: costsSchema,
      bypass: component('Bypass', {
        valid: z.boolean(),
        valid_for_seconds: z.int().min(0).max(BYPASS_SECONDS),
      }),
      headers: z.record(z.string(), z.string()),
    }),
    example: {
      ip: '203.0.113.5',
      peer: '10.0.0.1',
      forwarded_for: ['198.51.100.1', '203.0.113.5'],
      forwarded_for_believed: ['203.0.113.5'],
      limit_key: '203.0.113.5',
      limit: { limit: 120, remaining: 117, reset_seconds: 60 },
      costs: { '/search': { points: 1 }, '/lookup': { points: 1, per_names: 10 }, '/ping': { points: 0 } },
      bypass: { valid: false, valid_for_seconds: 0 },
      headers: { host: 'api.example', accept: '*/*' },
    },
  },
};

/** `GET /debug-ip`: how the client is identified for rate limits, and the costs of requests. */
export function debugIp(reading: RateLimit, costs: () => ShownCosts): Handler {
  return async (ctx) => {
    const { address, bypassSecondsLeft } = ctx.state;
    const { ip, peer, forwardedFor, trustedHops, key } = address;
    const body = {
      ip,
      peer,
      forwarded_for: forwardedFor.map(redactQueries),
      forwarded_for_believed: trustedHops,
      limit_key: key,
      limit: await reading.usage(key),
      costs: costs(),
      bypass: { valid: bypassSecondsLeft > 0, valid_for_seconds: bypassSecondsLeft },
      headers: redact(ctx.headers),
    };
    return jsonResponse(body, NO_STORE);
  };
}

function redact(headers: IncomingHttpHeaders): Record<string, string> {
  const shown = Object.entries(headers).map(([name, value]) => {
    const text = String(value);
    return [name, SHOWN.test(name) || isAddresses(text) ? redactQueries(text) : REDACTED];
  });
  return Object.fromEntries(shown) as Record<string, string>;
}

function isAddresses(text: string): boolean {
  return text.split(',').every((hop) => addressOf(hop.trim()) !== undefined);
}

function redactQueries(text: string): string {
  return text.replace(QUERY, `?${REDACTED}`);
}
