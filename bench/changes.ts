import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { sampleNames } from '../test/fixtures/generated-dataset.js';
import { median, percentile } from '../test/fixtures/statistics.js';
import { PHASES } from '../src/rebuild/process/progress.js';
import { changeCount, measureRebuild, readChanges, startOnChanged } from './changed-snapshot.js';
import { withEngines } from './engines.js';
import { exitByGoals, report } from './goals.js';
import { load, uncachedEnv } from './load.js';

/**
 * `npm run bench -- changes` measures how much comparing two snapshots costs a rebuild when one name in a
 * hundred changed, and how long reading the changes takes, relative to cold searches of the same run. The
 * exit code is 1 if a goal was missed.
 */

const { values } = parseArgs({ options: { names: { type: 'string', default: '1000000' } } });
const NAMES = Number(values.names);

/** Rounds in which all pages of changes are read. */
const ROUNDS = 5;

await withEngines(async ({ elasticsearch, input }) => {
  const names = await sampleNames(NAMES);
  const env = uncachedEnv(elasticsearch.url);
  const loaded = await load(NAMES, { env, folder: input });
  await loaded.service.stop();
  const service = await startOnChanged(NAMES, join(input, 'changed.csv'), {
    ...env,
    REGISTRY_SLUG: loaded.slug,
  });
  try {
    const { seconds: total, phases } = await measureRebuild(service);
    for (const phase of PHASES) {
      const { seconds, megabytes } = phases[phase];
      console.log(`  ${phase.padEnd(12)} ${seconds.toFixed(1).padStart(6)} s  ${megabytes.toFixed(0)} MB`);
    }
    const { comparing } = phases;
    const before = PHASES.slice(0, PHASES.indexOf('comparing')).map((phase) => phases[phase].megabytes);
    report('comparing: share of the rebuild time, percent', (comparing.seconds * 100) / total, 20);
    report('comparing: additional memory, megabytes', comparing.megabytes - Math.max(...before), 50);

    const changes = changeCount(NAMES);
    const { searches, pages } = await readChanges(service, names, changes, ROUNDS);
    const p50 = median(searches);
    console.log(
      `cold search: p50 ${p50.toFixed(1)} ms; page of 500 changes: p50 ${median(pages).toFixed(1)} ms`,
    );
    report(`${changes} changes, all pages: p99 ÷ p50 of cold searches`, percentile(pages, 0.99) / p50, 6);
  } finally {
    await service.stop();
  }
});
exitByGoals();
