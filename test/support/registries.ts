import { existsSync } from 'node:fs';
import { Client } from '@elastic/elasticsearch';
import { Redis } from 'ioredis';
import { aliasOf, isChangesOf, isSnapshotOf, rebuildsIndexOf } from '../../src/snapshot/index-names.js';
import { engines } from './engines.js';
import { inRunFolder, runId } from './run-folder.js';

/** The slug of the snapshot that suites share. */
export const sharedSlug = () => `shared-${runId()}`;

/** The dataset of the shared snapshot: a file that exists if some suite needs the snapshot. */
export const sharedDataset = () => inRunFolder('packages.csv');

/** After the run: removes the shared snapshot, if there is one. */
export async function removeSharedSnapshot(): Promise<void> {
  if (existsSync(sharedDataset())) await removeRegistries([sharedSlug()]);
}

/** Deletes the indices and keys of registries whose services have stopped. */
export async function removeRegistries(slugs: readonly string[]): Promise<void> {
  const client = new Client({ node: engines().elasticsearch.url });
  for (const slug of slugs) await removeRegistry(slug, client);
  await client.close();
}

export async function removeRegistry(slug: string, client: Client): Promise<void> {
  const alias = aliasOf(slug);
  const all = Object.keys(await client.indices.get({ index: `${alias}-*` }));
  const indices = all.filter((index) => isSnapshotOf(alias, index) || isChangesOf(alias, index));
  await client.indices.delete({ index: [...indices, rebuildsIndexOf(slug)], ignore_unavailable: true });
  const redis = new Redis(engines().redis.url);
  // Not KEYS, which would block a Redis that others use.
  for await (const keys of redis.scanStream({ match: `${slug}:*` }) as AsyncIterable<string[]>) {
    if (keys.length > 0) await redis.del(keys);
  }
  redis.disconnect();
}
