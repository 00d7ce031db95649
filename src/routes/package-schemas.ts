import { z } from 'zod';

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
