import { expect } from 'chai';
import { stopEngines } from './engines.js';
import { findLeaks } from './secret-scanner.js';
import { readers } from './background-reader.js';

/** After the last test of all suites, reports totals of the whole run. */
export const mochaHooks = {
  afterAll(): void {
    const { requests, failures, answeredAway } = readers;
    if (requests > 0) {
      console.log(
        `Readers during faults: ${requests} requests, ${failures} failures;` +
          ` ${answeredAway} 503 responses while Elasticsearch was down`,
      );
    }
    const { found, summary } = findLeaks();
    if (summary !== undefined) console.log(summary);
    expect(found).to.deep.equal([]);
  },
};

/**
 * Turns off the JVM's optimizing compiler, which takes a third of Elasticsearch's processor time: too much for a short
 * run.
 */
export function mochaGlobalSetup(): void {
  process.env['ES_JAVA_OPTS'] ??= '-XX:TieredStopAtLevel=1';
}

/** Runs after the last test, even if tests failed. */
export async function mochaGlobalTeardown(): Promise<void> {
  await stopEngines();
}
