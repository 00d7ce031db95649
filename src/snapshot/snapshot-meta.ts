import * as z from 'zod';
import { NAME_RULES } from '../util/name-rule.js';
import type { ChangeKind } from './change-record.js';
import { SCHEMA_VERSION, SNAPSHOT_ID } from './index-names.js';
import { OPTIONAL_FIELDS, type OptionalField } from './package-fields.js';

const count = z.int().nonnegative();

/** The chain of a snapshot (`lineage` in `_meta`), recorded after the comparison with the served snapshot. */
const lineage = z.object({
  /**
   * Ids of the earlier snapshots of the chain, latest first. The changes from each of these snapshots to this one are
   * recorded. Empty for the first snapshot of a chain.
   */
  ancestors: z.array(z.string().regex(SNAPSHOT_ID)),
  /** Number of packages that differ from the previous snapshot. */
  added: count,
  removed: count,
  updated: count,
});

export type RecordedChain = z.infer<typeof lineage>;

/** Validators of a downloaded document, for conditional requests. */
export const validators = z.object({
  /** SHA-256 of the document's address. The address itself may contain a secret. */
  origin: z.string(),
  etag: z.string().optional(),
  lastModified: z.string().optional(),
});

export type Validators = z.infer<typeof validators>;

/** The inputs that a snapshot was built from, for operators and refreshes. */
const builtFrom = z.object({
  /** The addresses of the dataset, without user names, passwords and the values of query parameters. */
  addresses: z.array(z.string()),
  /** DATASET_FORMAT, and the parsed DATASET_JSON. */
  format: z.string(),
  json: z.record(z.string(), z.unknown()).optional(),
  package_url_template: z.string().optional(),
  max_bad_rows: count,
  /** NAME_RULE, if it is not the default of the format. */
  name_rule: z.enum(NAME_RULES).optional(),
  /** WEIGHTS_URL without secrets, and WEIGHTS_COLUMNS; both only if there is a document of weights. */
  weights_address: z.string().optional(),
  weights_columns: z.object({ name: z.string(), weight: z.string() }).optional(),
  source: z.string().optional(),
  replicas: z.string(),
});

export type BuiltFrom = z.infer<typeof builtFrom>;

/** Metadata of a snapshot, stored in the index's `_meta`. */
export const snapshotMeta = z.object({
  /** The version in the name of the index. An index that an operator restored under another name must have it, too. */
  schema_version: z.literal(SCHEMA_VERSION),
  total: z.int().nonnegative(),
  /** REGISTRY_SOURCE, by default the host of the first package's URL, such as `tracker.debian.org`. */
  source: z.string(),
  /** ISO 8601. According to the dataset's server or content; otherwise the time of the download. */
  taken_at: z.iso.datetime(),
  built_from: builtFrom,
  /** SHA-256 of the dataset's packages, in hexadecimal. A refresh compares it to detect changes. */
  packages_digest: z.string(),
  dataset_validators: validators.optional(),
  /** SHA-256 of the downloaded document of weights. */
  weights_digest: z.string().optional(),
  weights_validators: validators.optional(),
  is_sample: z.boolean(),
  mapping_version: z.int(),
  /** Whether the dataset has the column `package_no`. Without it, a different number is not a change. */
  has_package_no: z.boolean(),
  /** Whether every package has a weight, from the dataset or a document of weights. */
  has_weights: z.boolean(),
  /** The other optional fields that at least one package has. */
  has_fields: z.array(z.string()),
  /** The name rule of the index. NAME_RULE may have changed since. */
  name_rule: z.enum(NAME_RULES),
  /** Undefined if no chain was recorded. */
  lineage: lineage.optional(),
});

/**
 * The version of the package mapping that this release writes. Raise it for each added field: the next refresh then
 * rebuilds even if the dataset has not changed. Older snapshots are served without the field.
 */
export const MAPPING_VERSION = 2;

export type SnapshotMeta = z.infer<typeof snapshotMeta>;

type OptionalFields = Pick<SnapshotMeta, 'has_weights' | 'has_fields'>;

/** Uses the schema with which replicas read metadata. @throws {Error} with the name of the first invalid field. */
export function assertReadable(meta: SnapshotMeta): void {
  const issue = snapshotMeta.safeParse(meta).error?.issues[0];
  if (issue !== undefined)
    throw new Error(`the _meta of the index would be invalid: ${issue.path.join('.')}: ${issue.message}`);
}

export function optionalMeta(fields: readonly string[]): OptionalFields {
  return {
    has_weights: fields.includes('weight'),
    has_fields: fields.filter((field) => field !== 'weight'),
  };
}

export function optionalFields({ has_weights, has_fields }: OptionalFields): OptionalField[] {
  const fields: string[] = [...has_fields, ...(has_weights ? ['weight'] : [])];
  return OPTIONAL_FIELDS.filter((field) => fields.includes(field));
}

/** How many packages differ from the previous snapshot; undefined if the two were not compared. */
export function changeCounts({ lineage }: SnapshotMeta): Record<ChangeKind, number> | undefined {
  return lineage === undefined || lineage.ancestors.length === 0 ? undefined : lineage;
}
