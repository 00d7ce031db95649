import { z } from 'zod';

/** Maximum number of packages in a response; a larger `limit` counts as this one. */
export const MAX_LIMIT = 500;

/** A query parameter in plain decimal digits, from 1. */
export const positiveInteger = z
  .string()
  .regex(/^0*[1-9]\d*$/, 'must be a whole number from 1 in plain decimal digits');

/** The query parameter `limit`. */
export function limitParam(defaultLimit: number) {
  return positiveInteger
    .transform((digits) => Math.min(Number(digits), MAX_LIMIT))
    .default(defaultLimit)
    .meta({
      type: 'integer',
      minimum: 1,
      description: `How many entries to answer with; more than ${MAX_LIMIT} count as ${MAX_LIMIT}.`,
    });
}

/** A package, as `/browse` answers with it. */
export const packageSchema = z.strictObject({
  no: z.int().min(1),
  name: z.string().min(1),
  version: z.string().min(1),
  // As the dataset has it: what browsers read (the WHATWG's URL) may hold characters that `format: uri` does not allow.
  url: z.string().regex(/^[Hh][Tt][Tt][Pp][Ss]?:\/\//),
});

export const PACKAGE_EXAMPLE = {
  no: 56220,
  name: 'redis-redisearch',
  version: '1:1.2.2-4',
  url: 'https://tracker.debian.org/pkg/redis-redisearch',
};
