import { hash, timingSafeEqual } from 'node:crypto';
import * as z from 'zod';
import { Problem } from '../problems/problem.js';
import { invalidParameter, parseParams } from '../request/query-params.js';
import { RateLimit, rateLimited, type RateLimitDeps } from '../limits/rate-limit.js';
import type { Context } from '../request/request-context.js';
import { trimWhiteSpace } from '../../util/unicode.js';

/** The query parameters of every endpoint that has a secret. */
export const secretParams = z.object({
  secret: z.string().optional().meta({
    component: 'secret',
    format: 'password',
    description:
      'The secret; 403 if it is wrong or missing. Better sent as `Authorization: Bearer`: logs of proxies contain URLs.',
  }),
});

/** Limit of rejected requests per address. */
const REJECTED_REQUESTS = { name: 'secrets', points: 10, windowSeconds: 15 * 60 };

/** Checks the secrets of all endpoints. Rejected requests, except cross-site ones, count towards one limit. */
export class SecretAuth {
  readonly #rejections: RateLimit;

  constructor(deps: RateLimitDeps) {
    this.#rejections = new RateLimit(REJECTED_REQUESTS, deps);
  }

  /**
   * Parses the query of a request, and checks its secret: `Authorization: Bearer`, or the parameter `secret`.
   * @returns the parameters.
   * @throws {Problem} 400 for invalid parameters, or if the secret is given twice; 403 for a wrong, missing or
   * unconfigured secret; 429 after too many rejected requests from one address, even with the right secret or a bypass
   * token. A request caused by a page of another site gets 403 and is not counted. Otherwise the page could lock out
   * its visitors.
   */
  async authorize<Schema extends typeof secretParams>(
    ctx: Context,
    schema: Schema,
    configured: string | undefined,
  ): Promise<z.output<Schema>> {
    // A page of another site caused this request, for example by an image, a link, a prefetch or a redirect. Pages
    // cannot set or remove `Sec-Fetch-Site`. Browsers send it only to `https:` and loopback addresses, and other
    // programs do not send it. Requests without it, or with another value, need only the secret.
    if (ctx.get('Sec-Fetch-Site') === 'cross-site') throw new Problem('forbidden');
    let params: z.output<Schema>;
    try {
      params = parseParams(schema, ctx.querystring);
      const inHeader = bearerToken(ctx.get('Authorization'));
      if (inHeader !== undefined && params.secret !== undefined) {
        throw invalidParameter('secret', 'must not be given together with Authorization: Bearer');
      }
      if (!secretsEqual(inHeader ?? params.secret, configured)) throw new Problem('forbidden');
    } catch (rejection) {
      await this.#count(ctx, 1);
      throw rejection;
    }
    // Redis counts one request after the other, so concurrent guesses cannot exceed the limit.
    await this.#count(ctx, 0);
    return params;
  }

  /** @param rejected 1 for a rejected request, 0 for a correct secret. @throws {Problem} 429 after ten rejected ones. */
  async #count({ state }: Context, rejected: 0 | 1): Promise<void> {
    const window = await this.#rejections.consume(state.address.key, rejected);
    const isAllowed = window.consumedPoints - rejected < REJECTED_REQUESTS.points;
    this.#rejections.stats.outcomes[isAllowed ? 'passed' : 'limited']++;
    if (!isAllowed) throw rateLimited(window, 'too many wrong secrets from this address');
  }
}

/**
 * The token, decoded as UTF-8: Node decodes headers as Latin-1. Undefined without the scheme Bearer. Proxies may add
 * other schemes for their own use.
 */
function bearerToken(authorization: string): string | undefined {
  const [, token] = /^bearer(?= |$)(.*)$/i.exec(authorization) ?? [];
  return token === undefined ? undefined : trimWhiteSpace(Buffer.from(token, 'latin1').toString());
}

/**
 * Compares a client's secret with the configured one in constant time. Both are hashed first, so their
 * lengths do not matter. An unconfigured secret matches nothing.
 */
function secretsEqual(given: string | undefined, configured: string | undefined): boolean {
  const digestOf = (text = '') => hash('sha256', text, 'buffer');
  const same = timingSafeEqual(digestOf(given), digestOf(configured));
  return same && given !== undefined && configured !== undefined;
}
