import { expect } from 'chai';
import { aliasOf, previousAliasOf } from '../../src/snapshot/index-names.js';
import { reasonOf } from '../../src/rebuild/failure-reason.js';
import { rollBack } from '../../src/publish/rollback.js';
import { packagesNamed } from '../support/datasets.js';
import { engines } from '../support/engines.js';
import { expectProblem } from '../support/expect-problem.js';
import { expectSearch, namesAt } from '../support/expect-search.js';
import { logLines, newSlug, rebuildHere, startService, useService } from '../support/service.js';
import { STEP } from '../support/step.js';
import { waitFor } from '../support/wait-for.js';
import { Client, type estypes } from '@elastic/elasticsearch';

/** Settings with which a snapshot could not be built or read. */
const DISTURBING: estypes.IndicesIndexSettings = {
  max_result_window: 1,
  number_of_replicas: 5,
  hidden: true,
  blocks: { metadata: true, read: true, read_only: true },
  analysis: { tokenizer: { trigram: { type: 'ngram', token_chars: ['digit'] } } },
};

describe('A manual change in Elasticsearch', function () {
  this.timeout(60_000);
  const packages = packagesNamed(['alpha', 'beta']);
  const suite = useService(() => packages);

  /** The indices behind an alias. */
  async function behind(name: string): Promise<string[]> {
    return Object.keys(await suite.service.elasticsearch.indices.getAlias({ name }));
  }

  /** Adds an index template for new indices of the registry. */
  async function putTemplate(template: estypes.IndicesPutIndexTemplateIndexTemplateMapping): Promise<void> {
    const { elasticsearch, alias, slug } = suite.service;
    await elasticsearch.indices.putIndexTemplate({
      name: slug,
      index_patterns: [`${alias}-*`],
      template,
    });
  }

  /** Runs a rebuild, which must fail and change nothing. @returns the reason. */
  async function failure(): Promise<string> {
    const { service } = suite;
    const before = await service.indices();
    const variables = { DATASET_URL: suite.dataset.url };
    const rebuilt = rebuildHere(variables, service.slug, { force: true });
    const reason = await rebuilt.then(() => 'none', reasonOf);
    expect(await service.indices()).to.deep.equal(before);
    await waitFor(async () => (await service.get('/health')).status === 200, 'the service');
    return reason;
  }

  it('of the alias does not make its target a snapshot for rollbacks', async () => {
    const { elasticsearch, alias, slug } = suite.service;
    const foreign = `${slug}-of-operator`;
    await elasticsearch.indices.create({ index: foreign, settings: { number_of_replicas: 0 } });
    await suite.publish(packages);
    const [served = ''] = await behind(alias);
    const [previous] = await behind(previousAliasOf(alias));
    await elasticsearch.indices.updateAliases({
      actions: [{ remove: { index: served, alias } }, { add: { index: foreign, alias } }],
    });
    await suite.publish(packages);
    expect(await behind(previousAliasOf(alias))).to.deep.equal([previous]);
    const [rebuilt] = await behind(alias);
    await suite.publish(packages);
    expect(await behind(previousAliasOf(alias))).to.deep.equal([rebuilt]);
    expect(await rollBack(elasticsearch, alias, STEP)).to.equal(rebuilt);
    expect(await elasticsearch.indices.exists({ index: foreign })).to.equal(true);
    await elasticsearch.indices.delete({ index: foreign });
  });

  it('is found if an index template adds the alias to new indices', async () => {
    const { elasticsearch, alias, slug } = suite.service;
    await putTemplate({ aliases: { [alias]: {} } });
    const reason = await failure().finally(() => elasticsearch.indices.deleteIndexTemplate({ name: slug }));
    expect(reason).to.equal(
      `an index template adds the alias ${alias} to new indices: remove it from the template`,
    );
    await suite.publish(packages);
    expect(await behind(alias)).to.have.length(1);
  });

  it('cannot change the results by an index template', async () => {
    const { elasticsearch, alias, slug } = suite.service;
    await elasticsearch.ingest.putPipeline({ id: slug, processors: [{ drop: {} }] });
    await putTemplate({ settings: { ...DISTURBING, default_pipeline: slug, final_pipeline: slug } });
    const indices = async () => {
      const index = `${alias}-2*`;
      return Object.keys(await elasticsearch.indices.get({ index, expand_wildcards: 'all' }));
    };
    try {
      await suite.publish(packages);
      const { length } = await indices();
      await suite.publish(packages);
      expect(await indices()).to.have.length(length);
      for (const q of ['eta', 'et']) await expectSearch(suite.service, q, ['beta']);
      expect(await namesAt(suite.service, '/browse')).to.deep.equal(['alpha', 'beta']);
    } finally {
      await elasticsearch.indices.deleteIndexTemplate({ name: slug });
      await elasticsearch.ingest.deletePipeline({ id: slug });
    }
  });

  it('is found by /health if the served index cannot be read', async () => {
    const { service } = suite;
    const [index = ''] = await behind(service.alias);
    const block = (isBlocked: boolean | null) =>
      service.elasticsearch.indices.putSettings({ index, settings: { 'index.blocks.read': isBlocked } });
    await block(true);
    try {
      expectProblem(await service.get('/search?q=lph'), 503, 'search_unavailable');
      await waitFor(async () => (await service.get('/health')).body.status === 'unavailable', '/health');
    } finally {
      await block(null);
    }
    await waitFor(async () => (await service.get('/health')).status === 200, 'the service');
    await expectSearch(service, 'lph', ['alpha']);
  });

  it('is found before the download if the served or the previous index is read-only', async () => {
    const { elasticsearch, alias } = suite.service;
    await suite.publish(packages);
    // Elasticsearch itself does not let `metadata` be removed by this request.
    const block = 'index.blocks.read_only';
    for (const [which, name] of Object.entries({ served: alias, previous: previousAliasOf(alias) })) {
      const [index = ''] = await behind(name);
      await elasticsearch.indices.putSettings({ index, settings: { [block]: true } });
      const settings = { [block]: null };
      const reason = await failure().finally(() => elasticsearch.indices.putSettings({ index, settings }));
      expect(reason).to.equal(`the ${which} index has the block ${block}: remove it`);
    }
  });

  it('is found before the download if an index has the name of an alias', async () => {
    const slug = newSlug();
    const alias = aliasOf(slug);
    const client = new Client({ node: engines().elasticsearch.url });
    const settings = { number_of_replicas: 0 };
    await client.indices.create({ index: alias, settings });
    const service = await startService({ DATASET_URL: 'file:///nowhere/names.csv' }, slug);
    try {
      const reason = `an index has the name of the alias ${alias}: rename or delete it`;
      expectProblem(await service.get('/search?q=alpha'), 503, 'search_unavailable');
      expect(logLines.map(({ msg }) => msg)).to.include(reason);
      await service.rebuild();
      expect(service.failure()).to.equal(reason);
      await client.indices.delete({ index: alias });
      await client.indices.create({ index: previousAliasOf(alias), settings });
      await service.rebuild();
      expect(service.failure()).to.contain(`of the alias ${previousAliasOf(alias)}:`);
    } finally {
      await service.end();
      await client.indices.delete({ index: [alias, previousAliasOf(alias)], ignore_unavailable: true });
      await client.close();
    }
  });
});
