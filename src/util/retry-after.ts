/**
 * The seconds to wait by `Retry-After` (RFC 9110): its number, or the time until its HTTP date.
 * @returns undefined if it is neither.
 */
export function secondsOf(retryAfter: string | null | undefined, now = Date.now()): number | undefined {
  const text = retryAfter ?? '';
  if (/^\d+$/.test(text)) return Number(text);
  const seconds = text.endsWith('GMT') ? Math.ceil((Date.parse(text) - now) / 1000) : NaN;
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}
