import type { IncomingHttpHeaders } from 'node:http';
import type { RequestLimit } from '../http/limits.js';
import type { Handler } from './handler.js';

/** Headers whose values are nobody's business, not even the sender's on a shared screen. */
const REDACTED = /authorization|cookie|token|secret|api-?key/i;

/** `GET /debug-ip`: as whom a user is limited, and why. */
export function debugIp(reading: RequestLimit): Handler {
  return async (ctx) => {
    const { address, bypassSecondsLeft } = ctx.state.client;
    const { ip, peer, forwardedFor, key } = address;
    ctx.set('Cache-Control', 'no-store');
    ctx.body = {
      ip,
      peer,
      forwarded_for: forwardedFor,
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
    REDACTED.test(name) ? '[redacted]' : value,
  ]);
  return Object.fromEntries(shown) as Record<string, unknown>;
}
