import * as z from 'zod';
import { component } from '../http/openapi/components.js';
import { SNAPSHOT_ID } from '../snapshot/index-names.js';
import { MATCHES } from '../search/name-filter.js';
import { MAX_NAME_BYTES } from '../snapshot/package-document.js';
import { ENTRY_SCHEMAS } from '../snapshot/package-fields.js';
import { codePoints, trimWhiteSpace } from '../util/unicode.js';

/** Maximum number of packages in a response; a larger `limit` is reduced to it. */
export const MAX_LIMIT = 500;

export const positiveInteger = z
  .string()
  .regex(/^0*[1-9]\d*$/, 'must be a whole number from 1 in plain decimal digits');

/** `\p{White_Space}` as escapes that ECMA-262 supports without the flag `u`. */
const SPACE = '\\u0009-\\u000D\\u0020\\u0085\\u00A0\\u1680\\u2000-\\u200A\\u2028\\u2029\\u202F\\u205F\\u3000';

/** A required parameter with `min` to `max` code points after trimming. */
export function trimmedText(min: number, max: number) {
  return z
    .string('is required')
    .overwrite(trimWhiteSpace)
    .refine((text) => {
      const { length } = codePoints(text);
      return length >= min && length <= max;
    }, `must have ${min} to ${max} characters`)
    .meta({ minLength: min, pattern: trimmedPattern(min, max) });
}

/** The regular expression of the values that `trimmedText` accepts, for the OpenAPI document. */
function trimmedPattern(min: number, max: number): string {
  const inner =
    min < 2 ? `([\\s\\S]{0,${max - 2}}[^${SPACE}])?` : `[\\s\\S]{${min - 2},${max - 2}}[^${SPACE}]`;
  return `^[${SPACE}]*[^${SPACE}]${inner}[${SPACE}]*$`;
}

export function limitParam(defaultLimit: number, max = MAX_LIMIT) {
  return positiveInteger
    .transform((digits) => Math.min(Number(digits), max))
    .default(defaultLimit)
    .meta({
      type: 'integer',
      minimum: 1,
      description: `The maximum number of results, up to ${max}.`,
    });
}

export const snapshotId = z.string().regex(SNAPSHOT_ID, 'must be an id from the X-Snapshot header');

export const snapshotParam = snapshotId.optional().meta({
  component: 'snapshot',
  description: 'The id (`X-Snapshot`) of the current or previous snapshot. Default: the current one.',
});

/** The exact name of a package, which need not exist. */
export const exactName = z
  .string()
  .refine((name) => {
    const bytes = Buffer.byteLength(name);
    return bytes >= 1 && bytes <= MAX_NAME_BYTES;
  }, `must have 1 to ${MAX_NAME_BYTES} bytes`)
  .meta({ minLength: 1, maxLength: MAX_NAME_BYTES });

/** @param within the property by which entries are sorted first, such as the rank. */
export function sortParam(within: string) {
  return z
    .enum(['name', 'weight'], 'must be name or weight')
    .meta({ id: 'SortOrder' })
    .optional()
    .meta({
      default: 'name',
      description: `The order within one ${within}: by name, or by weight, highest first.`,
    });
}

export const flagParam = z
  .enum(['true', 'false'], 'must be true or false')
  .meta({ id: 'Flag' })
  .default('false');

export const matchParam = z
  .enum(MATCHES, `must be ${MATCHES.join(', ').replace(/,(?= \w+$)/, ' or')}`)
  .meta({ id: 'Match' })
  .default('contains')
  .meta({
    component: 'match',
    description:
      'Whether names contain `q`, start with it (`prefix`), equal it (`exact`), or contain all of its 1 to 8 words, ' +
      'in any order (`words`).',
  });

/** Problems of every endpoint with the parameter `snapshot`. */
export const READ_PROBLEMS = [
  'invalid_parameter',
  'snapshot_gone',
  'initializing',
  'search_unavailable',
] as const;

export const packageSchema = component('Package', ENTRY_SCHEMAS);

export const PACKAGE_EXAMPLE = {
  no: 56220,
  name: 'redis-redisearch',
  version: '1:1.2.2-4',
  url: 'https://tracker.debian.org/pkg/redis-redisearch',
};
