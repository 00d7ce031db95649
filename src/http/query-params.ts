import { isUtf8 } from 'node:buffer';
import { LRUCache } from 'lru-cache';
import type { z } from 'zod';
import { Problem } from './problem.js';

const REPLACEMENT_CHARACTER = '\uFFFD';

/**
 * Whether the percent-encoded bytes of a parameter are UTF-8. Decoding alone does not tell: it replaces other bytes by
 * U+FFFD, which is also a legal character of a value. A `%` that encodes nothing stands for itself.
 */
function isEncodedUtf8(querystring: string, name: string): boolean {
  const pairs = querystring.split('&').filter((pair) => new URLSearchParams(`&${pair}`).has(name));
  return pairs.every((pair) => isUtf8(percentDecoded(pair)));
}

function percentDecoded(text: string): Buffer {
  const bytes = Buffer.from(text).toString('latin1');
  const decoded = bytes.replace(/%([\da-f]{2})/gi, (_match, hex: string) =>
    String.fromCharCode(parseInt(hex, 16)),
  );
  return Buffer.from(decoded, 'latin1');
}

/** 400: the parameter `name` and what it must be. */
function invalidParameter(name: string, must: string): Problem {
  return new Problem('invalid_parameter', { detail: `${name} ${must}` });
}

/**
 * Parses a raw query string by a schema. Parameters that the schema does not name are ignored, whatever they contain.
 * @throws {Problem} 400 that names the first parameter that is repeated, not UTF-8, or refused by the schema.
 */
export function parseParams<Schema extends z.ZodObject>(
  schema: Schema,
  querystring: string,
): z.output<Schema> {
  const given = new URLSearchParams(querystring);
  const values: Record<string, string> = {};
  for (const name of Object.keys(schema.shape)) {
    const [value, ...more] = given.getAll(name);
    if (more.length > 0) throw invalidParameter(name, 'must be given once');
    if (value?.includes(REPLACEMENT_CHARACTER) && !isEncodedUtf8(querystring, name)) {
      throw invalidParameter(name, 'must be UTF-8, percent-encoded');
    }
    if (value !== undefined) values[name] = value;
  }
  const parsed = schema.safeParse(values);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw invalidParameter(
    issue?.path.map(String).join('.') ?? 'a parameter',
    issue?.message ?? 'is malformed',
  );
}

/** How many query strings are remembered, and how long they may be. */
const MAX_MEMOIZED = 5000;
const MAX_MEMOIZED_LENGTH = 256;

/**
 * `parseParams` that remembers what it has parsed: popular requests come as the same text again and again.
 * @returns frozen parameters.
 */
export function memoizedParser<Schema extends z.ZodObject>(
  schema: Schema,
): (querystring: string) => Readonly<z.output<Schema>> {
  const remembered = new LRUCache<string, Readonly<z.output<Schema>>>({ max: MAX_MEMOIZED });
  return (querystring) => {
    const known = remembered.get(querystring);
    if (known !== undefined) return known;
    const params = Object.freeze(parseParams(schema, querystring));
    if (querystring.length <= MAX_MEMOIZED_LENGTH) remembered.set(querystring, params);
    return params;
  };
}
