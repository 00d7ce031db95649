import { hash, randomBytes } from 'node:crypto';

/** Pattern of a snapshot's id: `<utc time>-<random>`. */
const ID = '[0-9]{8}t[0-9]{6}z-[0-9a-f]{8}';

/** The id of a snapshot: the unique part of its index name. */
export const SNAPSHOT_ID = new RegExp(`^${ID}$`);

/** The end of an index name that `registryAliasOf` removes: `-<id>` or `-changes-<id>`. */
const INDEX_SUFFIX = new RegExp(`(-changes)?-${ID}$`);

/** The alias of a registry, used by readers. */
export function aliasOf(slug: string): string {
  return `${slug}-packages`;
}

/** The alias of the previous snapshot, for rollbacks. */
export function previousAliasOf(alias: string): string {
  return `${alias}-previous`;
}

/**
 * The alias that an index is loaded through. The flip removes it. If there is no flip, it is removed when the index is
 * deleted.
 */
export function loadingAliasOf(index: string): string {
  return `${index}-loading`;
}

/** The index of the changes from the previous snapshot to this snapshot. */
export function changesIndexOf(alias: string, snapshot: string): string {
  return `${alias}-changes-${snapshot}`;
}

/** The alias of the registry that the index of a snapshot, or of its changes, belongs to. */
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

/** When an index was created, from its name or the id of its snapshot (ISO 8601). */
export function builtAt(name: string): string | undefined {
  const [, year, month, day, hour, minute, second] =
    /(?:^|-)(\d{4})(\d{2})(\d{2})t(\d{2})(\d{2})(\d{2})z-[0-9a-f]{8}$/.exec(name) ?? [];
  return year && `${year}-${month}-${day}T${hour}:${minute}:${second}Z`;
}

/** Whether an index holds a snapshot of exactly this alias, not of another one with the same prefix. */
export function isSnapshotOf(alias: string, index: string): boolean {
  return index.startsWith(`${alias}-`) && SNAPSHOT_ID.test(index.slice(alias.length + 1));
}

/** Whether an index holds the changes of a snapshot of exactly this alias. */
export function isChangesOf(alias: string, index: string): boolean {
  return isSnapshotOf(`${alias}-changes`, index);
}

/** All indices of snapshots and changes of the alias, as a regular expression for roles in Elasticsearch. */
export function allIndicesOf(alias: string): string {
  return `/${alias}-(changes-)?${ID}/`;
}

/** The loading aliases of all indices of snapshots and changes of the alias, as a regular expression for roles. */
export function loadingAliasesOf(alias: string): string {
  return `/${alias}-(changes-)?${loadingAliasOf(ID)}/`;
}

/**
 * The id of the snapshot in an index. If a rebuild did not name the index, for example because an operator restored it
 * under another name, an id of the same form is derived from its name.
 */
export function snapshotIdOf(index: string): string {
  const id = index.slice(-'yyyymmddthhmmssz-xxxxxxxx'.length);
  return SNAPSHOT_ID.test(id) ? id : `00000000t000000z-${hash('sha1', index, 'hex').slice(0, 8)}`;
}
