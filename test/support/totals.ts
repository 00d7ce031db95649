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

const NAMES = Object.keys(totals) as (keyof typeof totals)[];

const file = () => inRunFolder('totals');

/** Adds the counts of this process to those of the run. */
export function addTotals(): void {
  if (Object.values(totals).every((count) => count === 0)) return;
  appendFileSync(file(), `${JSON.stringify(totals)}\n`);
  for (const name of NAMES) totals[name] = 0;
}

/** In the main process, after all tests: prints the totals of the run. */
export function printTotals(): void {
  if (!existsSync(file())) return;
  for (const line of readFileSync(file(), 'utf8').trimEnd().split('\n')) {
    const counted = JSON.parse(line) as typeof totals;
    for (const name of NAMES) totals[name] += counted[name];
  }
  const { reads, failedReads, readsAnsweredAway, logLines, responses } = totals;
  const away = `${readsAnsweredAway} 503 responses while Elasticsearch was down`;
  if (reads > 0) console.log(`Background readers: ${reads} requests, ${failedReads} failures; ${away}`);
  console.log(`Searched ${logLines} log lines and ${responses} responses for secrets`);
}
