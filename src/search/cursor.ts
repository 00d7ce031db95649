import { hash } from 'node:crypto';
import { isUtf8 } from 'node:buffer';
import { MAX_NAME_BYTES } from '../snapshot/package-document.js';

const TIERS = ['startsWith', 'containsElsewhere', 'equals'] as const;

/** With `sort=weight` or `match=words`, names of rank 0 are a separate tier; otherwise they are in `startsWith`. */
type Tier = (typeof TIERS)[number];

/** The end of a page: its last entry instead of a position, so that it is valid in every snapshot, with every limit. */
export interface Cursor {
  tier: Tier;
  name: string;
  /** Weight of the last entry, if sorting by weight was requested. */
  weight?: number;
}

/** Length of the query's digest in a cursor, in bytes. */
const QUERY_BYTES = 6;
const HEAD_BYTES = 1 + QUERY_BYTES;

/** Length of a weight in a cursor, in bytes: a double. */
const WEIGHT_BYTES = 8;

/** Added to the first byte, which encodes the tier, if the cursor has a weight. */
const HAS_WEIGHT = 0x80;

/** Length of the longest cursor, in characters. */
export const MAX_CURSOR_LENGTH = Math.ceil(((HEAD_BYTES + WEIGHT_BYTES + MAX_NAME_BYTES) * 4) / 3);

/** Encodes a cursor for clients, in base64url. */
export function encodeCursor(q: string, { tier, name, weight }: Cursor): string {
  const number = Buffer.alloc(weight === undefined ? 0 : WEIGHT_BYTES);
  if (weight !== undefined) number.writeDoubleBE(weight);
  const first = TIERS.indexOf(tier) + (weight === undefined ? 0 : HAS_WEIGHT);
  return Buffer.concat([Buffer.of(first), digestOf(q), number, Buffer.from(name)]).toString('base64url');
}

/** Undefined if `text` is not a cursor for the query `q` in the order that `byWeight` requests. */
export function decodeCursor(q: string, text: string, byWeight = false): Cursor | undefined {
  if (text.length > MAX_CURSOR_LENGTH) return undefined;
  const bytes = Buffer.from(text, 'base64url');
  // Decoding ignores invalid characters.
  if (bytes.toString('base64url') !== text) return undefined;
  const tier = TIERS[(bytes[0] ?? TIERS.length) - (byWeight ? HAS_WEIGHT : 0)];
  const name = bytes.subarray(HEAD_BYTES + (byWeight ? WEIGHT_BYTES : 0));
  if (tier === undefined || name.length === 0 || !isUtf8(name)) return undefined;
  if (!bytes.subarray(1, HEAD_BYTES).equals(digestOf(q))) return undefined;
  if (!byWeight) return { tier, name: name.toString() };
  const weight = bytes.readDoubleBE(HEAD_BYTES);
  return Number.isSafeInteger(weight) && weight >= 0 ? { tier, name: name.toString(), weight } : undefined;
}

function digestOf(q: string): Buffer {
  return hash('sha1', q, 'buffer').subarray(0, QUERY_BYTES);
}
