import { createHmac, hkdfSync, randomUUID, timingSafeEqual } from 'node:crypto';

/** Validity of a token, in seconds. */
export const BYPASS_SECONDS = 3600;

/** Maximum clock skew between two replicas, in seconds. */
const CLOCK_SKEW_SECONDS = 5;

/** `<unix_seconds>:<base64url of 32 bytes>`; anything else is rejected before hashing. */
const TOKEN = /^(\d{1,12}):([\w-]{43})$/;

/** Signs and verifies tokens: `<unix_seconds>:<signature>`. The signature is the HMAC-SHA256 of the seconds. */
export class BypassTokens {
  readonly #key: Buffer;

  /**
   * @param secret `BYPASS_SECRET`; without it, a random one: no token is valid.
   * @param slug of the registry. The key is derived from secret and slug, so tokens of other registries are invalid.
   * @param now the clock, in milliseconds.
   */
  constructor(
    secret: string = randomUUID(),
    slug: string,
    private readonly now: () => number = Date.now,
  ) {
    this.#key = Buffer.from(hkdfSync('sha256', secret, '', `bypass-token/${slug}`, 32));
  }

  /** Issues a token that is valid from now. */
  issue(): string {
    const issuedAt = this.#seconds();
    return `${issuedAt}:${this.#sign(String(issuedAt))}`;
  }

  /**
   * Seconds for which `token` is still valid; 0 if it is malformed, forged or expired, or if its time is ahead by more
   * than the clock skew.
   */
  secondsLeft(token: string): number {
    const [, issuedAt, signature] = TOKEN.exec(token) ?? [];
    if (issuedAt === undefined || signature === undefined) return 0;
    // Compares the encoded texts, because several texts decode to the same bytes.
    if (!timingSafeEqual(Buffer.from(signature), Buffer.from(this.#sign(issuedAt)))) return 0;
    const age = this.#seconds() - Number(issuedAt);
    if (age < -CLOCK_SKEW_SECONDS || age >= BYPASS_SECONDS) return 0;
    return Math.min(BYPASS_SECONDS - age, BYPASS_SECONDS);
  }

  #seconds(): number {
    return Math.floor(this.now() / 1000);
  }

  #sign(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('base64url');
  }
}
