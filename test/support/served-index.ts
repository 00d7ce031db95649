import { previousAliasOf } from '../../src/snapshot/index-names.js';
import type { Service } from './service.js';

/** The index that a service's alias points to. @throws the client's 404 error before the first flip. */
export async function servedIndex({ elasticsearch, alias }: Service): Promise<string> {
  const [index = ''] = Object.keys(await elasticsearch.indices.getAlias({ name: alias }));
  return index;
}

/** The current and the previous index of a registry; undefined if there is none. */
export async function keptIndices({ elasticsearch, alias }: Service): Promise<(string | undefined)[]> {
  const found = await elasticsearch.indices.get({ index: `${alias}-*`, features: ['aliases'] });
  const indexOf = (name: string) => Object.keys(found).find((index) => name in (found[index]?.aliases ?? {}));
  return [alias, previousAliasOf(alias)].map(indexOf);
}
