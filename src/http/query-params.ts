import { isUtf8 } from 'node:buffer';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { codePoints } from '../code-points.js';
import { Problem } from './problem.js';
import { trimWhiteSpace } from '../white-space.js';

const BROWSE_LIMIT = { default: 200, max: 500 } as const;
const SEARCH_LIMIT = { default: 250, max: 500 } as const;
const QUERY_LENGTH = { min: 2, max: 100 } as const;

/** `\p{White_Space}` in a form that every dialect of regular expressions knows. */
const SPACE = '\\u0009-\\u000D\\u0020\\u0085\\u00A0\\u1680\\u2000-\\u200A\\u2028\\u2029\\u202F\\u205F\\u3000';
/** For the OpenAPI document: a query that has the right length once it is trimmed. */
const QUERY_PATTERN = `^[${SPACE}]*[^${SPACE}][\\s\\S]{${QUERY_LENGTH.min - 2},${QUERY_LENGTH.max - 2}}[^${SPACE}][${SPACE}]*$`;

const REPLACEMENT_CHARACTER = '\uFFFD';

const positiveInteger = z
  .string()
  .regex(/^0*[1-9]\d*$/, 'must be a whole number from 1 in plain decimal digits');

const page = positiveInteger
  .transform(Number)
  .refine(Number.isSafeInteger, 'is too large to be an exact integer')
  .default(1)
  .meta({
    type: 'integer',
    minimum: 1,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'The page, from 1; past the end it is empty.',
  });

function limit(bounds: { default: number; max: number }) {
  return positiveInteger
    .transform((digits) => Math.min(Number(digits), bounds.max))
    .default(bounds.default)
    .meta({
      type: 'integer',
      minimum: 1,
      description: `How many entries to answer with; more than ${bounds.max} count as ${bounds.max}.`,
    });
}

const query = z
  .string('is required')
  .overwrite(trimWhiteSpace)
  .refine(
    (text) => isBetween(codePoints(text).length, QUERY_LENGTH.min, QUERY_LENGTH.max),
    `must have ${QUERY_LENGTH.min} to ${QUERY_LENGTH.max} characters`,
  )
  .meta({
    minLength: QUERY_LENGTH.min,
    pattern: QUERY_PATTERN,
    description: `A part of the name, of ${QUERY_LENGTH.min} to ${QUERY_LENGTH.max} characters without the white space around it; case is ignored.`,
    examples: ['redis'],
  });

export const browseParams = z.object({ page, limit: limit(BROWSE_LIMIT) });
export const searchParams = z.object({ q: query, limit: limit(SEARCH_LIMIT) });
export const secretParams = z.object({
  secret: z.string().optional().meta({ description: 'The secret; without the right one the answer is 403.' }),
});
export const rebuildParams = secretParams.extend({
  force: z
    .enum(['true', 'false'], 'must be true or false')
    .default('false')
    .meta({ description: 'Accepts a snapshot that is much smaller than the one before.' }),
});

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

function isBetween(n: number, min: number, max: number): boolean {
  return n >= min && n <= max;
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
