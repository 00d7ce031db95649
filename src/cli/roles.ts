import type { estypes } from '@elastic/elasticsearch';
import { aliasOf, allIndicesOf, loadingAliasesOf, previousAliasOf } from '../snapshot/index-names.js';

/**
 * The privileges of the two keys of a registry. The keys have no privileges on the cluster or on other indices. A
 * privilege on an alias does not apply to requests that name its index, so each role lists both. The patterns match
 * complete names of indices, because indices of another registry may have the same prefix.
 */
type Role = estypes.SecurityRoleDescriptor;

/**
 * Resolves the aliases of the current and the previous snapshot, and searches their indices by name: a cached
 * response and its `ETag` must belong to one snapshot, and an alias may move between two searches.
 */
export function readerRole(slug: string): Role {
  const alias = aliasOf(slug);
  return {
    cluster: [],
    indices: [
      { names: [alias], privileges: ['read', 'view_index_metadata'] },
      { names: [previousAliasOf(alias)], privileges: ['view_index_metadata'] },
      { names: [allIndicesOf(alias)], privileges: ['read'] },
    ],
  };
}

/**
 * Creates, merges, copies, checks and deletes indices, and moves the aliases. If Elasticsearch has no named
 * privilege below `manage`, the action itself is granted.
 */
export function builderRole(slug: string): Role {
  const alias = aliasOf(slug);
  return {
    cluster: [],
    indices: [
      {
        names: [allIndicesOf(alias)],
        privileges: [
          'create_index',
          'delete_index',
          'maintenance',
          'monitor',
          'read',
          'view_index_metadata',
          MOVE_ALIASES,
          'indices:admin/block/add',
          'indices:admin/settings/update',
        ],
      },
      { names: [alias, previousAliasOf(alias)], privileges: ['view_index_metadata', MOVE_ALIASES] },
      { names: [loadingAliasesOf(alias)], privileges: ['create', RECORD_CHAIN, MOVE_ALIASES] },
    ],
  };
}

const MOVE_ALIASES = 'indices:admin/aliases';

/** Replaces the `_meta` of an index that is not served yet. Until the flip, the index has its loading alias. */
const RECORD_CHAIN = 'indices:admin/mapping/put';
