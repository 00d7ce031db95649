import { hash } from 'node:crypto';
import * as z from 'zod';
import { MAX_NAME_BYTES } from '../snapshot/package-document.js';
import { parseJson } from '../util/decode.js';

const cursorSchema = z.object({
  /** With `sort=weight` or `match=words`, names of rank 0 are the tier `equals`; otherwise they are in `startsWith`. */
  tier: z.enum(['startsWith', 'containsElsewhere', 'equals']),
  /** Elasticsearch rejects lone surrogates. */
  name: z
    .string()
    .max(MAX_NAME_BYTES)
    .regex(/^\P{Surrogate}+$/u),
  /** Weight of the last entry, if sorting by weight was requested. */
  weight: z.int().min(0).optional(),
});

/** The end of a page: its last entry instead of a position, so that it is valid in every snapshot, with every limit. */
export type Cursor = z.output<typeof cursorSchema>;

/** Encodes a cursor for clients. It has a digest of the query `q` that it is bound to. */
export function encodeCursor(q: string, { tier, name, weight }: Cursor): string {
  const digest = hash('sha1', q, 'base64url').slice(0, 8);
  return Buffer.from(JSON.stringify({ digest, tier, name, weight })).toString('base64url');
}

/** Undefined if `text` is not a cursor for the query `q` in the order that `byWeight` requests. */
export function decodeCursor(q: string, text: string, byWeight = false): Cursor | undefined {
  const { data: cursor } = cursorSchema.safeParse(parseJson(Buffer.from(text, 'base64url').toString()));
  if (cursor === undefined || (cursor.weight !== undefined) !== byWeight) return undefined;
  // Base64 and JSON have several texts for one value.
  return encodeCursor(q, cursor) === text ? cursor : undefined;
}
