import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../config/config.js';
import { defaultNameRule } from '../config/dataset-format.js';
import { MAPPING_VERSION, type BuiltFrom, type SnapshotMeta } from '../snapshot/snapshot-meta.js';

/** The part of the configuration that a snapshot depends on. */
type Inputs = Pick<Config, 'dataset' | 'indexReplicas' | 'registry' | 'weights'>;

export function builtFrom({ dataset, indexReplicas, registry, weights }: Inputs): BuiltFrom {
  return {
    addresses: dataset.urls.map(withoutSecrets),
    format: dataset.format,
    json: dataset.format === 'json' ? { ...dataset.jsonPaths } : undefined,
    package_url_template: dataset.packageUrlTemplate,
    max_bad_rows: dataset.maxBadRows,
    name_rule: dataset.nameRule === defaultNameRule(dataset.format) ? undefined : dataset.nameRule,
    weights_address: weights.url && withoutSecrets(weights.url),
    weights_columns: weights.url === undefined ? undefined : weights.columns,
    source: registry.source,
    replicas: indexReplicas,
  };
}

/**
 * Whether a rebuild of the same packages and weights would build the same snapshot. Addresses are not compared, because
 * the same document may have moved.
 */
export function isSameInput(config: Inputs, { built_from: from, mapping_version }: SnapshotMeta): boolean {
  if (mapping_version !== MAPPING_VERSION) return false;
  const { addresses, weights_address } = from;
  return isDeepStrictEqual(stored({ ...builtFrom(config), addresses, weights_address }), stored(from));
}

/** The inputs as Elasticsearch stores them: without undefined members. */
function stored(from: BuiltFrom): BuiltFrom {
  return JSON.parse(JSON.stringify(from)) as BuiltFrom;
}

/** The variables that determine the content of a snapshot and have changed since it was built. */
export function differingVariables(config: Inputs, from: BuiltFrom): string[] {
  const now = stored(builtFrom(config));
  const compared = {
    DATASET_URL: 'addresses',
    DATASET_FORMAT: 'format',
    DATASET_JSON: 'json',
    PACKAGE_URL_TEMPLATE: 'package_url_template',
    NAME_RULE: 'name_rule',
    WEIGHTS_URL: 'weights_address',
    WEIGHTS_COLUMNS: 'weights_columns',
  } as const;
  return Object.entries(compared)
    .filter(([, member]) => !isDeepStrictEqual(now[member], stored(from)[member]))
    .map(([name]) => name);
}

/** An address without its user, password, fragment and query values, because each may be secret. */
function withoutSecrets(address: string): string {
  const url = new URL(address);
  url.username = '';
  url.password = '';
  const query = [...url.searchParams.keys()].map((key) => `${encodeURIComponent(key)}=…`).join('&');
  url.search = '';
  url.hash = '';
  return query === '' ? url.href : `${url.href}?${query}`;
}
