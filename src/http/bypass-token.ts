import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';

/** How long a token skips the limits, in seconds. */
export const BYPASS_SECONDS = 3600;

/** How far the clocks of two replicas may be apart, in seconds. */
const CLOCK_SKEW_SECONDS = 5;

/** `<unix_seconds>:<base64url of 32 bytes>`; anything longer is not worth hashing. */
const TOKEN = /^(\d{1,12}):([\w-]{43})$/;

/** Signs and checks the tokens of one deployment: `<unix_seconds>:<signature>`, HMAC-SHA256 over the time of issue. */
export class BypassTokens {
  readonly #key: Buffer | undefined;

  /**
   * @param secret `BYPASS_SECRET`; without one no token is valid.
   * @param slug of the registry: the key is derived with it, so that a sibling's token is worth nothing here.
   * @param now the clock, in milliseconds.
   */
  constructor(
    secret: string | undefined,
    slug: string,
    private readonly now: () => number = Date.now,
  ) {
    if (secret === undefined) return;
    this.#key = Buffer.from(hkdfSync('sha256', secret, '', `bypass-token/${slug}`, 32));
  }

  /** A token that is valid from now on. @throws {Error} without a secret. */
  issue(): string {
    const issuedAt = this.#seconds();
    return `${issuedAt}:${this.#sign(String(issuedAt))}`;
  }

  /** Seconds for which `token` is still valid; 0 when it is malformed, forged, expired or from the future. */
  secondsLeft(token: string | undefined): number {
    if (this.#key === undefined || token === undefined) return 0;
    const [, issuedAt, signature] = TOKEN.exec(token) ?? [];
    if (issuedAt === undefined || signature === undefined) return 0;
    // As they are written: several texts decode to the same bytes.
    if (!timingSafeEqual(Buffer.from(signature), Buffer.from(this.#sign(issuedAt)))) return 0;
    const age = this.#seconds() - Number(issuedAt);
    if (age < -CLOCK_SKEW_SECONDS || age >= BYPASS_SECONDS) return 0;
    return Math.min(BYPASS_SECONDS - age, BYPASS_SECONDS);
  }

  #seconds(): number {
    return Math.floor(this.now() / 1000);
  }

  #sign(text: string): string {
    if (this.#key === undefined) throw new Error('no bypass secret is configured');
    return createHmac('sha256', this.#key).update(text).digest('base64url');
  }
}
