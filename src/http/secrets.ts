import { createHash, timingSafeEqual } from 'node:crypto';

/**
 * Compares a secret from a client with the configured one, in a time that tells nothing about either:
 * both are hashed first, so lengths do not matter. A secret that is not configured matches nothing.
 */
export function secretsEqual(given: string | undefined, configured: string | undefined): boolean {
  const same = timingSafeEqual(sha256(given ?? ''), sha256(configured ?? ''));
  return same && given !== undefined && configured !== undefined;
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
