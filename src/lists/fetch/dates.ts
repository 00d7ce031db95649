import { isGzip } from './decompress.js';

/** Maximum time by which the clock of an origin may be ahead, in milliseconds. A later date counts as unknown. */
const MAX_CLOCK_SKEW_MS = 300_000;

/**
 * Reads the date in a gzip header: bytes 4 to 7, in seconds since 1970, where 0 means unknown (RFC 1952, section 2.3).
 * @param start at least the first eight bytes of a file.
 * @returns undefined if the file is not gzip.
 */
export function gzipDate(start: Buffer): Date | undefined {
  if (start.length < 8 || !isGzip(start)) return undefined;
  return new Date(start.readUInt32LE(4) * 1000);
}

/**
 * Picks the first plausible date: valid, later than the epoch (which file systems and servers use for "unknown"), and
 * not in the future, apart from clock skew.
 * @returns the date, or now if the date is later; undefined if no date is plausible.
 */
export function firstPlausibleDate(...dates: (Date | undefined)[]): Date | undefined {
  const now = Date.now();
  const time = dates
    .map((date) => date?.getTime() ?? 0)
    .find((candidate) => candidate > 0 && candidate <= now + MAX_CLOCK_SKEW_MS);
  return time === undefined ? undefined : new Date(Math.min(time, now));
}
