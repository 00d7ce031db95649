import { listIndices } from '../../src/rebuild/steps/prune.js';
import { isSnapshotOf, previousAliasOf } from '../../src/snapshot/index-names.js';
import type { Service } from './service.js';

/** The index that a service's alias points to. @throws the client's 404 error before the first flip. */
export async function servedIndex({ elasticsearch, alias }: Service): Promise<string> {
  const [index = ''] = Object.keys(await elasticsearch.indices.getAlias({ name: alias }));
  return index;
}

/** The current and the previous index of a registry; undefined if there is none. */
export async function keptIndices({ elasticsearch, alias }: Service): Promise<(string | undefined)[]> {
  const indices = [...(await listIndices(elasticsearch, alias))].filter(([index]) =>
    isSnapshotOf(alias, index),
  );
  return [alias, previousAliasOf(alias)].map(
    (name) => indices.find(([, names]) => names.includes(name))?.[0],
  );
}
