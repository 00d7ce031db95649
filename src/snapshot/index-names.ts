import { hash, randomBytes } from 'node:crypto';

/**
 * Version of all that a registry stores in Elasticsearch. It is part of every name, so releases with different schemas
 * run side by side on one cluster, and neither reads or deletes data of the other. Raise it for each change that an
 * earlier release could not read.
 */
export const SCHEMA_VERSION = 2;

/** Pattern of a snapshot's id: `<utc time>-<random>`. */
const ID = '[0-9]{8}t[0-9]{6}z-[0-9a-f]{8}';

/** The id of a snapshot: the unique part of its index name. */
export const SNAPSHOT_ID = new RegExp(`^${ID}$`);

/** Suffix of an index name: `-<id>` or `-changes-<id>`. */
const INDEX_SUFFIX = new RegExp(`(-changes)?-${ID}$`);

/** The alias of a registry, used by readers, such as `debian-packages-v2`. */
export function aliasOf(slug: string): string {
  return `${slug}-packages-v${SCHEMA_VERSION}`;
}

/** The index with the state and the history of a registry's rebuilds. */
export function rebuildsIndexOf(slug: string): string {
  return `${slug}-rebuilds-v${SCHEMA_VERSION}`;
}

export function previousAliasOf(alias: string): string {
  return `${alias}-previous`;
}

/** The alias that an index is loaded through. The flip or the deletion of the index removes it. */
export function loadingAliasOf(index: string): string {
  return `${index}-loading`;
}

/** The index of the changes from the previous snapshot to this snapshot. */
export function changesIndexOf(alias: string, snapshot: string): string {
  return `${alias}-changes-${snapshot}`;
}

/** The registry's alias, derived from the name of a snapshot index or of a change index. */
export function registryAliasOf(index: string): string {
  return index.replace(INDEX_SUFFIX, '');
}

/** The name of a new index: `<alias>-<utc time>-<random>`, which sorts by time. */
export function newIndexName(alias: string, now: Date): string {
  const time = now
    .toISOString()
    .replace(/[-:]|\.\d+/g, '')
    .toLowerCase();
  return `${alias}-${time}-${randomBytes(4).toString('hex')}`;
}

/** The creation time of an index (ISO 8601), read from the index name or the snapshot's id. */
export function builtAt(name: string): string | undefined {
  const [, year, month, day, hour, minute, second] =
    /(?:^|-)(\d{4})(\d{2})(\d{2})t(\d{2})(\d{2})(\d{2})z-[0-9a-f]{8}$/.exec(name) ?? [];
  return year && `${year}-${month}-${day}T${hour}:${minute}:${second}Z`;
}

/** Whether an index holds a snapshot of this alias, and not of a longer alias that begins with it. */
export function isSnapshotOf(alias: string, index: string): boolean {
  return index.startsWith(`${alias}-`) && SNAPSHOT_ID.test(index.slice(alias.length + 1));
}

export function isChangesOf(alias: string, index: string): boolean {
  return isSnapshotOf(`${alias}-changes`, index);
}

/** A regular expression, for Elasticsearch roles, that matches the alias's snapshot and change indices. */
export function allIndicesOf(alias: string): string {
  return `/${alias}-(changes-)?${ID}/`;
}

/** Like `allIndicesOf`, for the loading aliases of these indices. */
export function loadingAliasesOf(alias: string): string {
  return `/${alias}-(changes-)?${loadingAliasOf(ID)}/`;
}

/** If an operator restored the index under a name without an id, an id of that form is made from a hash of the name. */
export function snapshotIdOf(index: string): string {
  const id = index.slice(-'yyyymmddthhmmssz-xxxxxxxx'.length);
  return SNAPSHOT_ID.test(id) ? id : `00000000t000000z-${hash('sha1', index, 'hex').slice(0, 8)}`;
}
