import { expect } from 'chai';
import { readConfig } from '../../../src/config/config.js';
import { builtFrom } from '../../../src/rebuild/built-from.js';
import { NO_DATASET, plan, type Facts } from '../../../src/rebuild/plan.js';
import { MAPPING_VERSION, type SnapshotMeta } from '../../../src/snapshot/snapshot-meta.js';
import type { FoundIndex } from '../../../src/snapshot/snapshot.js';

const URL = 'https://registry.example/list.csv';

function configOf(env: Record<string, string> = {}) {
  return readConfig({
    ELASTICSEARCH_URL: 'http://127.0.0.1',
    REGISTRY_SLUG: 'mine',
    DATASET_URL: URL,
    ...env,
  });
}

/** The bundled sample of the default registry. */
const SAMPLE = configOf({ DATASET_URL: '', REGISTRY_SLUG: '' });

/** An index, newer the higher `createdAt` is, built from the dataset of `configOf()`. */
function index(
  createdAt: number,
  meta: Partial<SnapshotMeta> = {},
  others: Partial<FoundIndex> = {},
): FoundIndex {
  return {
    index: `index-${createdAt}`,
    createdAt,
    meta: {
      total: 1000,
      packages_digest: `digest-${createdAt}`,
      mapping_version: MAPPING_VERSION,
      built_from: builtFrom(configOf()),
      ...meta,
    },
    ...others,
  } as FoundIndex;
}

const docs = (total: number, weights?: { had: number; have: number }) => ({ documents: { total, weights } });
const UNCHANGED = { skipIf: 'unchanged' } as const;
const [OLD, NEW] = [index(1), index(2)];
const WEIGHED = index(2, { weights_digest: 'weights' });

/** What is decided: `build`, `skip`, the digest of a document that would not be built again, or why it is refused. */
const DECISIONS: [what: string, facts: Partial<Facts>, decision: string | RegExp][] = [
  ['a first snapshot', {}, 'build'],
  ['another one', { served: OLD }, 'build'],
  ['a cold start with an index', { served: OLD, skipIf: 'served' }, 'skip'],
  ['a cold start without one', { previous: OLD, skipIf: 'served' }, 'build'],
  ['a refresh', { served: NEW, previous: OLD, ...UNCHANGED }, 'build unless digest-2'],
  ['a refresh after a rollback', { served: OLD, previous: NEW, ...UNCHANGED }, 'build unless digest-2'],
  ['a refresh with weights', { served: WEIGHED, ...UNCHANGED }, 'build unless digest-2 and weights'],
  ['a refresh with other settings', { served: NEW, config: configOf({ NAME_RULE: 'pypi' }), ...UNCHANGED }, 'build'],
  ['a refresh of an older mapping', { served: index(2, { mapping_version: 0 }), ...UNCHANGED }, 'build'],
  ['a refresh of a foreign index', { served: { ...OLD, meta: undefined }, ...UNCHANGED }, 'build'],
  ['a rebuild at an address that moved', { served: NEW, config: configOf({ DATASET_URL: `${URL}2` }), ...UNCHANGED }, 'build unless digest-2'],
  ['the sample', { config: SAMPLE }, 'build'],
  ['the sample over itself', { config: SAMPLE, served: index(1, { is_sample: true }) }, 'build'],
  ['the sample over a dataset', { config: SAMPLE, served: OLD }, NO_DATASET],
  ['the sample over a dataset that was rolled back', { config: SAMPLE, previous: OLD }, NO_DATASET],
  ['the sample in another registry', { config: configOf({ DATASET_URL: '' }) }, NO_DATASET],
  ['a block', { served: index(1, {}, { block: 'metadata' }) }, 'the served index has the block index.blocks.metadata: remove it'],
  ['a block of the previous index', { served: NEW, previous: index(1, {}, { block: 'read_only' }) }, /^the previous index has the block/],
  ['a list of 90 %', { served: OLD, ...docs(900) }, 'build'],
  ['a list of less', { served: OLD, ...docs(899) }, 'the snapshot has 899 packages, the previous one 1000: smaller by more than 10 % (REBUILD_MAX_SHRINK_PERCENT); accept it with force=true or --force'],
  ['a list of less that is forced', { served: OLD, force: true, ...docs(1) }, 'build'],
  ['a first list', docs(1), 'build'],
  ['a list of less than allowed', { served: index(1, { total: 3 }), ...docs(2) }, /^the snapshot has 2 packages/],
  ['weights of half the names', { served: OLD, ...docs(1000, { had: 4, have: 2 }) }, 'build'],
  ['weights of fewer', { served: OLD, ...docs(1000, { had: 4, have: 1 }) }, 'WEIGHTS_URL: of 4 names that had a weight, 1 have one now: fewer than half; accept it with force=true or --force'],
  ['weights of fewer that are forced', { served: OLD, force: true, ...docs(1000, { had: 4, have: 0 }) }, 'build'],
]; // prettier-ignore

describe('The plan of a rebuild', () => {
  for (const [what, facts, decision] of DECISIONS) {
    it(`is, for ${what}: ${String(decision).slice(0, 60)}`, () => {
      const planned = plan({
        config: configOf(),
        force: false,
        served: undefined,
        previous: undefined,
        ...facts,
      });
      const known = planned.action === 'build' ? planned.known : undefined;
      const unless = [known?.digest, known?.weights?.digest].filter(Boolean).join(' and ');
      const made =
        planned.action === 'refuse'
          ? planned.reason
          : [planned.action, unless].filter(Boolean).join(' unless ');
      if (typeof decision === 'string') expect(made).to.equal(decision);
      else expect(made).to.match(decision);
    });
  }

  for (const [percent, before, smallest] of [
    [10, 4_000_000, 3_600_000],
    [0, 1000, 1000],
    [50, 3000, 1500],
    [18, 150, 123],
    [10, 999, 900],
    [99, 1, 1],
    [100, 1_000_000, 1],
  ] as const) {
    it(`accepts ${smallest} of ${before} packages with REBUILD_MAX_SHRINK_PERCENT=${percent}`, () => {
      const config = configOf({ REBUILD_MAX_SHRINK_PERCENT: String(percent) });
      const decide = (total: number) =>
        plan({
          config,
          force: false,
          served: index(1, { total: before }),
          previous: undefined,
          ...docs(total),
        });
      expect(decide(smallest).action).to.equal('build');
      if (percent < 100) expect(decide(smallest - 1).action).to.equal('refuse');
    });
  }
});
