import type { Service } from './service.js';

/** The index that a service's alias points to. @throws the client's 404 error before the first flip. */
export async function servedIndex({ elasticsearch, alias }: Service): Promise<string | undefined> {
  return Object.keys(await elasticsearch.indices.getAlias({ name: alias }))[0];
}
