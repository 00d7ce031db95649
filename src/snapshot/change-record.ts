import { kibanaFieldsOf } from './package-document.js';
import { COMPARED_FIELDS, comparedMembers, type PackageEntry } from './package-fields.js';

export const CHANGES = ['added', 'removed', 'updated'] as const;

export type ChangeKind = (typeof CHANGES)[number];

/** The change of one name in one snapshot. At least one of the entries is defined. */
export interface ChangeRecord {
  /** The id of the snapshot. */
  snapshot: string;
  /** The entry in the previous snapshot; undefined if the package was added. */
  before?: PackageEntry | undefined;
  /** The entry in this snapshot; undefined if the package was removed. */
  after?: PackageEntry | undefined;
}

export type Difference = Omit<ChangeRecord, 'snapshot'>;

/** A difference between two snapshots, as clients see it. */
export interface Change {
  change: ChangeKind;
  /** The entry. For a removed package, its last entry. */
  entry: PackageEntry;
  /** For updated packages, the version in the earlier snapshot, even if the version has not changed. */
  previousVersion?: string;
}

export function encodeRecord(record: ChangeRecord): string {
  return Buffer.from(JSON.stringify(record)).toString('base64');
}

/** The document of a change in its index. */
export function changeDocument(record: ChangeRecord, takenAt: string): { id: string; source: string } {
  const { before, after } = record;
  const entry = (after ?? before) as PackageEntry;
  const document = {
    ...comparedMembers(entry),
    length: kibanaFieldsOf(entry.name).length,
    change: kindOf(record),
    ...(before !== undefined && after !== undefined ? { previous_version: before.version } : {}),
    taken_at: takenAt,
    entry: encodeRecord(record),
  };
  return { id: entry.name, source: JSON.stringify(document) };
}

export function decodeRecord(encoded: string): ChangeRecord {
  return JSON.parse(Buffer.from(encoded, 'base64').toString()) as ChangeRecord;
}

export function nameOf({ before, after }: ChangeRecord): string {
  return (after ?? before)?.name ?? '';
}

export function kindOf({ before, after }: Difference): ChangeKind {
  if (before === undefined) return 'added';
  return after === undefined ? 'removed' : 'updated';
}

/**
 * @param records of one name, oldest first, at least one.
 * @param hasPackageNo whether a different number is a change.
 * @returns undefined if the last record leaves the entry as it was before the first record.
 */
export function netChange(records: readonly ChangeRecord[], hasPackageNo: boolean): Change | undefined {
  const before = records[0]?.before;
  const last = records.at(-1);
  const entry = last?.after ?? last?.before;
  if (entry === undefined) throw new Error('a change record has no entry');
  const after = last?.after;
  if (before === undefined && after === undefined) return undefined;
  if (before === undefined || after === undefined) return { change: kindOf({ before, after }), entry };
  if (isSame(before, after, hasPackageNo)) return undefined;
  return { change: 'updated', entry, previousVersion: before.version };
}

/** Ignores volatile fields, and also the number if `hasPackageNo` is false. */
export function isSame(one: PackageEntry, other: PackageEntry, hasPackageNo: boolean): boolean {
  return COMPARED_FIELDS.every((field) => one[field] === other[field] || (field === 'no' && !hasPackageNo));
}
