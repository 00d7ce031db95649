/**
 * The seconds that `Retry-After` asks for (RFC 9110): a number, or until a date in the format of HTTP.
 * @returns undefined if it is neither.
 */
export function secondsOf(retryAfter: string | null | undefined, now = Date.now()): number | undefined {
  const text = retryAfter ?? '';
  if (/^\d+$/.test(text)) return Number(text);
  const seconds = text.endsWith('GMT') ? Math.ceil((Date.parse(text) - now) / 1000) : NaN;
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}
