import { MAPPING_VERSION, type SnapshotMeta } from '../../src/snapshot/snapshot-meta.js';
import { SCHEMA_VERSION } from '../../src/snapshot/index-names.js';

/** Metadata of an index that a test creates itself. */
export function metaWith(total: number): SnapshotMeta {
  return {
    schema_version: SCHEMA_VERSION,
    total,
    source: 'registry.example',
    taken_at: new Date().toISOString(),
    built_from: { addresses: [], format: 'csv', max_bad_rows: 0, replicas: '0' },
    packages_digest: '',
    is_sample: false,
    mapping_version: MAPPING_VERSION,
    has_package_no: true,
    has_weights: false,
    has_fields: [],
    name_rule: 'exact',
  };
}
