/**
 * The seconds to wait, from the value of a `Retry-After` header (RFC 9110): a number of seconds, or an HTTP date. 0 if
 * the date is past.
 * @returns undefined if the value is missing, or has neither form.
 */
export function retryAfterSeconds(retryAfter: string | null | undefined): number | undefined {
  const text = retryAfter ?? '';
  if (/^\d+$/.test(text)) return Number(text);
  const seconds = text.endsWith('GMT') ? Math.ceil((Date.parse(text) - Date.now()) / 1000) : NaN;
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}
