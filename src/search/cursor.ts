import { hash } from 'node:crypto';
import { isUtf8 } from 'node:buffer';
import { MAX_NAME_BYTES } from '../snapshot/package-document.js';

const TIERS = ['startsWith', 'containsElsewhere'] as const;

/** The two parts of the matches of a query: names that start with it, and names that contain it elsewhere. */
type Tier = (typeof TIERS)[number];

/**
 * The end of a page of a search. It contains the last entry instead of a position, so that it is valid in
 * every snapshot and for every limit.
 */
export interface Cursor {
  /** Tier of the last entry. */
  tier: Tier;
  /** Name of the last entry. */
  name: string;
}

/** Bytes of the digest of the query that a cursor belongs to. */
const QUERY_BYTES = 6;
const HEAD_BYTES = 1 + QUERY_BYTES;

/** Length of the longest cursor, in characters. */
export const MAX_CURSOR_LENGTH = Math.ceil(((HEAD_BYTES + MAX_NAME_BYTES) * 4) / 3);

/** Encodes a cursor for clients, in base64url. */
export function encodeCursor(q: string, { tier, name }: Cursor): string {
  const head = Buffer.concat([Buffer.of(TIERS.indexOf(tier)), digestOf(q)]);
  return Buffer.concat([head, Buffer.from(name)]).toString('base64url');
}

/** Decodes a cursor. @returns undefined if it was not made by `encodeCursor` for the query `q`. */
export function decodeCursor(q: string, text: string): Cursor | undefined {
  if (text.length > MAX_CURSOR_LENGTH) return undefined;
  const bytes = Buffer.from(text, 'base64url');
  // Decoding ignores invalid characters.
  if (bytes.toString('base64url') !== text) return undefined;
  const tier = TIERS[bytes[0] ?? TIERS.length];
  const name = bytes.subarray(HEAD_BYTES);
  if (tier === undefined || name.length === 0 || !isUtf8(name)) return undefined;
  if (!bytes.subarray(1, HEAD_BYTES).equals(digestOf(q))) return undefined;
  return { tier, name: name.toString() };
}

function digestOf(q: string): Buffer {
  return hash('sha1', q, 'buffer').subarray(0, QUERY_BYTES);
}
