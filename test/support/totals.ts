import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { inRunFolder } from './run-folder.js';

/** What the tests of this process have counted since `addTotals`. */
export const totals = {
  /** Requests of background readers, their failures, and accepted 503 responses. */
  reads: 0,
  failedReads: 0,
  readsAnsweredAway: 0,
  /** What was searched for secrets. */
  logLines: 0,
  responses: 0,
};

const file = () => inRunFolder('totals');

/** Adds the counts of this process to those of the run. */
export function addTotals(): void {
  if (Object.values(totals).every((count) => count === 0)) return;
  appendFileSync(file(), `${JSON.stringify(totals)}\n`);
  for (const name of Object.keys(totals) as (keyof typeof totals)[]) totals[name] = 0;
}

/** In the main process, after all tests: prints the totals of the run. */
export function printTotals(): void {
  if (!existsSync(file())) return;
  const counted = readFileSync(file(), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as typeof totals);
  const sum = (name: keyof typeof totals) => counted.reduce((total, counts) => total + counts[name], 0);
  if (sum('reads') > 0) {
    console.log(
      `Background readers: ${sum('reads')} requests, ${sum('failedReads')} failures;` +
        ` ${sum('readsAnsweredAway')} 503 responses while Elasticsearch was down`,
    );
  }
  console.log(`Searched ${sum('logLines')} log lines and ${sum('responses')} responses for secrets`);
}
