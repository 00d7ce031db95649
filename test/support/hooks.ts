import { expect } from 'chai';
import { stopEngines } from './engines.js';
import { findLeaks } from './secret-scanner.js';
import { readers } from './background-reader.js';

/** After the last test of all suites: reports what only the whole run can tell. */
export const mochaHooks = {
  afterAll(): void {
    const { requests, failures, answeredAway } = readers;
    if (requests > 0) {
      console.log(
        `Readers during faults: ${requests} requests, ${failures} failures;` +
          ` ${answeredAway} answers 503 while Elasticsearch was away`,
      );
    }
    const { found, summary } = findLeaks();
    if (summary !== undefined) console.log(summary);
    expect(found).to.deep.equal([]);
  },
};

/** Mocha calls it after the last test, also when tests failed. */
export async function mochaGlobalTeardown(): Promise<void> {
  await stopEngines();
}
