import { stopEngines } from './engines.js';

/** Mocha calls it after the last test, also when tests failed. */
export async function mochaGlobalTeardown(): Promise<void> {
  await stopEngines();
}
