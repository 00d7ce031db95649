import type { estypes } from '@elastic/elasticsearch';
import { aliasOf, allChangesOf, buildsOf, loadingAliasesOf, previousAliasOf } from '../search/index-names.js';

/**
 * What the two keys of a registry may do: nothing with the cluster, and with no other index. What is granted on an alias
 * holds for requests to the alias alone, not to its index by name, so each says both. The builds are given by the whole
 * form of their names: another registry's may begin alike.
 */
type Role = estypes.SecurityRoleDescriptor;

/**
 * Reads where the aliases of the current and the previous build point, and searches the builds themselves: a cached
 * response and its `ETag` must belong to one generation, and an alias may move between two searches.
 */
export function readerRole(slug: string): Role {
  const alias = aliasOf(slug);
  return {
    cluster: [],
    indices: [
      { names: [alias], privileges: ['read', 'view_index_metadata'] },
      { names: [previousAliasOf(alias)], privileges: ['view_index_metadata'] },
      { names: [buildsOf(alias), allChangesOf(alias)], privileges: ['read'] },
    ],
  };
}

/**
 * Makes, merges, copies, tries and removes builds, and moves the aliases. Where Elasticsearch has no named privilege that
 * is smaller than `manage`, it is the action itself that is granted.
 */
export function builderRole(slug: string): Role {
  const alias = aliasOf(slug);
  return {
    cluster: [],
    indices: [
      {
        names: [buildsOf(alias), allChangesOf(alias)],
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
      { names: [loadingAliasesOf(alias)], privileges: ['create', RECORD_LINEAGE, MOVE_ALIASES] },
    ],
  };
}

const MOVE_ALIASES = 'indices:admin/aliases';

/** Replaces the `_meta` of a build that is not served yet: it has its loading alias until then. */
const RECORD_LINEAGE = 'indices:admin/mapping/put';
