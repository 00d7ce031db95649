import * as z from 'zod';
import type { Operation } from '../http/openapi/document.js';
import { component } from '../http/openapi/components.js';
import { BYPASS_SECONDS, type BypassTokens } from '../http/auth/bypass-token.js';
import { secretParams, type SecretAuth } from '../http/auth/secret-auth.js';
import type { Handler } from '../http/request/request-context.js';
import { jsonResponse, NO_STORE } from '../http/response/response.js';

const USAGE = 'Send it with each request as the header X-Bypass-Token.';

export const getBypassOperation: Operation = {
  id: 'getBypassToken',
  tag: 'Access',
  summary: 'A token that skips the rate limits for an hour',
  description: 'Send it as the header `X-Bypass-Token`. 403 unless the service has a secret for it.',
  params: secretParams,
  response: {
    description: 'The token to send with each request.',
    schema: component('BypassToken', {
      bypass_token: z.string().regex(/^\d+:[\w-]{43}$/),
      valid_for_seconds: z.literal(BYPASS_SECONDS),
      usage: z.string(),
    }),
    example: {
      bypass_token: '1795268907:RHNVX5j4oZ51axvUuwqy96itmeWEG3YLJof07YCHkMY',
      valid_for_seconds: BYPASS_SECONDS,
      usage: USAGE,
    },
  },
  problems: ['invalid_parameter', 'forbidden', 'rate_limited'],
};

/** `GET /get-bypass?secret=`: a token that skips the rate limits for an hour. */
export function getBypass(secrets: SecretAuth, tokens: BypassTokens, secret: string | undefined): Handler {
  return async (ctx) => {
    await secrets.authorize(ctx, secretParams, secret);
    const token = { bypass_token: tokens.issue(), valid_for_seconds: BYPASS_SECONDS, usage: USAGE };
    return jsonResponse(token, NO_STORE);
  };
}
