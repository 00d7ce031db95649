import { BYPASS_SECONDS, type BypassTokens } from '../http/bypass-token.js';
import { parseParams, secretParams } from '../http/params.js';
import type { SecretCheck } from '../http/secret-check.js';
import type { Handler } from './handler.js';

/** `GET /get-bypass?secret=`: a token that skips the rate limits for an hour. */
export function getBypass(secrets: SecretCheck, tokens: BypassTokens, secret: string | undefined): Handler {
  return async (ctx) => {
    const params = parseParams(secretParams, ctx.querystring);
    await secrets.check(ctx, params.secret, secret);
    ctx.set('Cache-Control', 'no-store');
    ctx.body = {
      bypass_token: tokens.issue(),
      valid_for_seconds: BYPASS_SECONDS,
      usage: 'Send it with each request as the header X-Bypass-Token.',
    };
  };
}
