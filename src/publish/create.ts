import { readFile } from 'node:fs/promises';
import { errors, type Client, type estypes } from '@elastic/elasticsearch';
import { errorIn } from '../elasticsearch/elasticsearch.js';
import type { SnapshotMeta } from '../snapshot/snapshot-meta.js';
import { loadingAliasOf, previousAliasOf, registryAliasOf } from '../snapshot/index-names.js';
import { retry, type RetryOptions } from './retry.js';
import type { NameRule } from '../util/name-rule.js';
import { PROJECT_FOLDER } from '../util/project-folder.js';

/** What an index contains. Each kind of content has a file in `mappings/`. */
type Content = 'packages' | 'changes';

interface NewIndex {
  index: string;
  meta?: SnapshotMeta;
  /** The rule by which the index compares names; by default the rule in `meta`. */
  nameRule?: NameRule;
}

/** A file in `mappings/`: the whole request for an index of rule `exact`. */
interface IndexFile {
  settings: { analysis: Record<string, object> };
  mappings: estypes.MappingTypeMapping;
}

/**
 * Creates an index: sends its file in `mappings/` with the analyzers of the name rule, `_meta` and the loading alias.
 * During the load, the index has no replicas and is not refreshed. Warns if an index template adds a lifecycle policy,
 * which may delete the index while it is served. The request does not override the policy, because some builds of
 * Elasticsearch do not know this setting.
 * @throws {Error} if an index template adds an alias of the registry, which would serve the index at once, or runtime
 * fields, which may hide fields of the mapping.
 */
export async function createIndex(
  client: Client,
  content: Content,
  { index, meta, nameRule = meta?.name_rule ?? 'exact' }: NewIndex,
  options: RetryOptions,
): Promise<void> {
  const { settings, mappings } = await readIndexFile(content);
  const request = {
    index,
    settings,
    mappings: { ...withNameRule(mappings, settings.analysis, nameRule), ...(meta && { _meta: meta }) },
    aliases: { [loadingAliasOf(index)]: {} },
  };
  // Not aborted by the signal: Elasticsearch could create the index afterwards, and only the next rebuild would delete it.
  await retry(() => createOnce(client, request), options);
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

/** Selects the normalizers and analyzers of a rule, if it has its own: `bigrams_pypi` instead of `bigrams`. */
function withNameRule<T>(mappings: T, analysis: Record<string, object>, rule: NameRule): T {
  return JSON.parse(JSON.stringify(mappings), (key, value: unknown) => {
    const ofRule = `${String(value)}_${rule}`;
    return ofRule in (analysis[key] ?? {}) ? ofRule : value;
  }) as T;
}

/** Reads a file in `mappings/`. */
export async function readIndexFile(name: Content | 'rebuilds'): Promise<IndexFile> {
  return JSON.parse(await readFile(new URL(`mappings/${name}.json`, PROJECT_FOLDER), 'utf8')) as IndexFile;
}

/** An index that exists counts as created: the response to an earlier attempt may have been lost. */
export async function createOnce(client: Client, request: estypes.IndicesCreateRequest): Promise<void> {
  await client.indices.create(request).catch((error: unknown) => {
    const { type } = error instanceof errors.ResponseError ? errorIn(error) : {};
    if (type !== 'resource_already_exists_exception') throw error;
  });
}
