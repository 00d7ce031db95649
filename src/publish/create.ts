import { readFile } from 'node:fs/promises';
import { errors, type Client, type estypes } from '@elastic/elasticsearch';
import { errorIn } from '../elasticsearch/elasticsearch.js';
import type { SnapshotMeta } from '../snapshot/snapshot-meta.js';
import { loadingAliasOf, previousAliasOf, registryAliasOf } from '../snapshot/index-names.js';
import { fieldMappings } from '../snapshot/package-fields.js';
import { retry, type RetryOptions } from './retry.js';
import { charFilterOf, type NameRule } from '../util/name-rule.js';
import { PROJECT_FOLDER } from '../util/project-folder.js';

/** What an index contains. Each kind of content has a file in `mappings/`. */
type Content = 'packages' | 'changes';

interface NewIndex {
  index: string;
  meta?: SnapshotMeta;
  /** The rule by which the index compares names; by default the rule in `meta`. */
  nameRule?: NameRule;
}

/** `mappings/names.json`: how indices of packages and of changes store and compare names. */
interface Names {
  analysis: estypes.IndicesIndexSettingsAnalysis & {
    char_filter: Record<string, object>;
    normalizer: Record<string, { char_filter: string[] }>;
    analyzer: Record<string, { char_filter: string[] }>;
  };
  name: estypes.MappingProperty;
}

/**
 * Creates an index from the files in `mappings/` and the fields of packages. During the load, the index has no replicas
 * and is not refreshed. Warns if an index template adds a lifecycle policy, which may delete the index while it is
 * served. The request does not override the policy, because some builds of Elasticsearch do not know this setting.
 * @throws {Error} if an index template adds an alias of the registry, which would serve the index at once, or runtime
 * fields, which may hide fields of the mapping.
 */
export async function createIndex(
  client: Client,
  content: Content,
  { index, meta, nameRule = meta?.name_rule ?? 'exact' }: NewIndex,
  options: RetryOptions,
): Promise<void> {
  const { settings, mappings } =
    await readMappings<Required<Pick<estypes.IndicesCreateRequest, 'settings' | 'mappings'>>>(content);
  const names = await readMappings<Names>('names');
  addNameRule(names.analysis, nameRule);
  const request = {
    index,
    settings: { ...settings, analysis: names.analysis },
    mappings: {
      ...mappings,
      properties: { ...fieldMappings(content), name: names.name, ...mappings.properties },
      ...(meta === undefined ? {} : { _meta: meta }),
    },
    aliases: { [loadingAliasOf(index)]: {} },
  };
  await retry(
    // Not aborted by the signal: Elasticsearch could create the index afterwards, and nobody would delete it.
    () =>
      client.indices.create(request).catch((error: unknown) => {
        // An earlier attempt succeeded, but its response was lost. No other process creates an index of this name.
        if (!isAlreadyCreated(error)) throw error;
      }),
    options,
  );
  const look: estypes.IndicesGetRequest = { index, features: ['aliases', 'mappings', 'settings'] };
  const found = await retry((signal) => client.indices.get(look, { signal }), options);
  const { aliases = {}, mappings: created, settings: applied } = found[index] ?? {};
  const alias = registryAliasOf(index);
  const added = [alias, previousAliasOf(alias)].find((name) => name in aliases);
  if (added !== undefined) {
    throw new Error(`an index template adds the alias ${added} to new indices: remove it from the template`);
  }
  if (created?.runtime !== undefined) {
    throw new Error('an index template adds runtime fields to new indices: remove them from the template');
  }
  const policy = applied?.index?.lifecycle?.name;
  if (policy !== undefined) {
    options.log.warn(
      { index, policy },
      'an index template adds a lifecycle policy, which may delete the index',
    );
  }
}

async function readMappings<T>(file: string): Promise<T> {
  return JSON.parse(await readFile(new URL(`mappings/${file}.json`, PROJECT_FOLDER), 'utf8')) as T;
}

/** Adds the char filter only where there is none, because `fold` has its own. */
function addNameRule(analysis: Names['analysis'], rule: NameRule): void {
  const separators = charFilterOf(rule);
  if (separators === undefined) return;
  analysis.char_filter['name_rule'] = separators;
  for (const { char_filter: filters } of Object.values({ ...analysis.normalizer, ...analysis.analyzer })) {
    if (filters.length === 0) filters.push('name_rule');
  }
}

function isAlreadyCreated(error: unknown): boolean {
  return error instanceof errors.ResponseError && errorIn(error).type === 'resource_already_exists_exception';
}
