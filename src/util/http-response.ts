/**
 * Statuses of a server that cannot be reached by its proxy or is not ready, such as a node that is starting or has no
 * master. Not 429: a busy server is available.
 */
export const UNAVAILABLE_STATUSES = [502, 503, 504];

/** Invalid if the text is not a date of HTTP, such as `Tue, 02 Jan 2024 03:04:05 GMT`. */
export function parseHttpDate(text = ''): Date {
  return new Date(text.endsWith('GMT') ? text : NaN);
}

/** 0 if the date is past. Undefined if the value is neither a number of seconds nor an HTTP date (RFC 9110). */
export function retryAfterSeconds(retryAfter: string | null | undefined): number | undefined {
  const text = retryAfter ?? '';
  if (/^\d+$/.test(text)) return Number(text);
  const seconds = Math.ceil((parseHttpDate(text).getTime() - Date.now()) / 1000);
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}
