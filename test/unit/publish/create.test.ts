import { rejects } from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { SnapshotMeta } from '../../../src/snapshot/snapshot-meta.js';
import { NAME_RULES, type NameRule } from '../../../src/util/name-rule.js';
import { createIndex } from '../../../src/publish/create.js';
import { errorResponse, interceptedClient } from '../../support/intercepted-client.js';
import { metaWith } from '../../support/snapshot-meta.js';
import { loggedStep } from '../../support/step.js';

describe('createIndex', () => {
  const alias = 'registry-packages';
  const index = `${alias}-20260101t000000z-00000000`;
  const fileOf = (content: string) =>
    readFileSync(new URL(`../../../mappings/${content}.json`, import.meta.url), 'utf8');

  /** Creates an index, of which Elasticsearch then has this. @returns the request, and what was logged. */
  async function create(
    content: 'packages' | 'changes',
    created: { meta?: SnapshotMeta; nameRule?: NameRule } = {},
    found: object = {},
    answer: () => unknown = () => ({}),
  ) {
    const { logged, ...step } = loggedStep();
    let sent: unknown;
    const client = interceptedClient(({ method, body }) => {
      if (method === 'GET') return { [index]: found };
      sent = body;
      return answer();
    });
    await createIndex(client, content, { index, ...created }, step);
    return { body: sent as { mappings: object }, logged };
  }

  for (const content of ['packages', 'changes'] as const)
    it(`sends the file of ${content} with the analyzers of the name rule`, async () => {
      for (const rule of NAME_RULES) {
        const plain = /(?<="(?:normalizer|analyzer)": ")(?!fold)\w+/g;
        const own = fileOf(content).replace(plain, ['pypi', 'crates'].includes(rule) ? `$&_${rule}` : '$&');
        const expected = { ...(JSON.parse(own) as object), aliases: { [`${index}-loading`]: {} } };
        expect((await create(content, { nameRule: rule })).body, rule).to.deep.equal(expected);
      }
    });

  it('adds the metadata of a snapshot, whose name rule it follows', async () => {
    const meta = { ...metaWith(3), name_rule: 'crates' as const };
    const { mappings, ...others } = (await create('packages', { nameRule: 'crates' })).body;
    const { body } = await create('packages', { meta });
    expect(body).to.deep.equal({ ...others, mappings: { ...mappings, _meta: meta } });
  });

  it('succeeds if only the response to an earlier attempt was lost', async () => {
    const answers = [errorResponse(503), errorResponse(400, 'resource_already_exists_exception')];
    await create('changes', {}, {}, () => Promise.reject(answers.shift() ?? expect.fail()));
    const refused = create('changes', {}, {}, () => Promise.reject(errorResponse(400)));
    await rejects(refused, { name: 'ResponseError' });
  });

  for (const [what, found, pronoun] of [
    [`the alias ${alias}`, { aliases: { [alias]: {} } }, 'it'],
    [`the alias ${alias}-previous`, { aliases: { [`${alias}-previous`]: {} } }, 'it'],
    ['runtime fields', { mappings: { runtime: {} } }, 'them'],
  ] as const) {
    const message = `an index template adds ${what} to new indices: remove ${pronoun} from the template`;
    it(`fails if an index template adds ${what}`, () => rejects(create('changes', {}, found), { message }));
  }

  // The Elasticsearch of the tests has no such policies.
  it('warns of a lifecycle policy from an index template', async () => {
    const { logged } = await create(
      'changes',
      {},
      { settings: { index: { lifecycle: { name: 'thirty-days' } } } },
    );
    const msg = 'an index template adds a lifecycle policy, which may delete the index';
    expect(logged).to.have.length(1);
    expect(logged[0]).to.include({ index, policy: 'thirty-days', msg });
  });
});
