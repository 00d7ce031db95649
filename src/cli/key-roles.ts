import type { estypes } from '@elastic/elasticsearch';
import {
  aliasOf,
  allIndicesOf,
  loadingAliasesOf,
  previousAliasOf,
  rebuildsIndexOf,
} from '../snapshot/index-names.js';

/**
 * The privileges of one of the two keys of a registry. The keys have no privileges on the cluster or on other indices.
 * A privilege on an alias does not apply to requests that name the index instead, so each role lists aliases and
 * indices. The patterns match complete names of indices, because indices of another registry may have the same prefix.
 */
type Role = estypes.SecurityRoleDescriptor;

/**
 * The role for reads. They resolve the aliases of the current and the previous snapshot, then search an index by its
 * name. An alias may move between two searches, but a response and its `ETag` must belong to one snapshot.
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
 * The role for rebuilds. They create, merge, copy, check and delete indices, move the aliases, and keep their state and
 * their history. Actions that no named privilege except `manage` includes are granted one by one.
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
      { names: [rebuildsIndexOf(slug)], privileges: ['create_index', 'read', 'delete', ...WRITE] },
      { names: [loadingAliasesOf(alias)], privileges: ['create', RECORD_CHAIN, MOVE_ALIASES] },
    ],
  };
}

/** The privilege `index` would also allow changing the mapping. */
const WRITE = ['indices:data/write/index*', 'indices:data/write/update*'];

const MOVE_ALIASES = 'indices:admin/aliases';

/**
 * Allows replacing the `_meta` of an index. It is granted only on loading aliases, and an index loses its loading alias
 * at the flip.
 */
const RECORD_CHAIN = 'indices:admin/mapping/put';
