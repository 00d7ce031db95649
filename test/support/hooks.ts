import { expect } from 'chai';
import { engines, stopEngines } from './engines.js';
import { leaks } from './leaks.js';
import { readers } from './reader.js';

const UNIT_TESTS = /\/test\/unit\//;

export const mochaHooks = {
  /** Starts the engines while the unit tests run, if other tests follow: Elasticsearch takes longest to start. */
  beforeAll(this: Mocha.Context): void {
    const files = this.test?.parent?.suites.map(({ file = '' }) => file) ?? [];
    const areUnitTests = files.map((file) => UNIT_TESTS.test(file));
    // The suite that needs them first reports a failure.
    if (areUnitTests.includes(true) && areUnitTests.includes(false)) engines().catch(() => undefined);
  },

  /** Reports what only the whole run can tell. */
  afterAll(): void {
    const { requests, failures, answeredAway } = readers;
    if (requests > 0) {
      console.log(
        `Readers during faults: ${requests} requests, ${failures} failures;` +
          ` ${answeredAway} answers 503 while Elasticsearch was away`,
      );
    }
    const { found, summary } = leaks();
    if (summary !== undefined) console.log(summary);
    expect(found).to.deep.equal([]);
  },
};

/** Mocha calls it after the last test, also when tests failed. */
export async function mochaGlobalTeardown(): Promise<void> {
  await stopEngines();
}
