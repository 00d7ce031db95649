import { execFileSync } from 'node:child_process';
import { expect } from 'chai';
import { provideEngines, stopEngines, useFastStartingJvm } from './engines.js';
import { removeSharedSnapshot } from './registries.js';
import { beginRun, endRun } from './run-folder.js';
import { findLeaks } from './secret-scanner.js';
import { addTotals, printTotals } from './totals.js';

/** Whether the arguments of mocha name only tests that need neither engines nor the build. */
function hasOnlyUnitTests(): boolean {
  const specs = process.argv.filter(
    (argument) => /(^|\/)test\//.test(argument) && !argument.includes('node_modules'),
  );
  return specs.length > 0 && specs.every((spec) => /(^|\/)test\/unit(\/|$)/.test(spec));
}

/** Runs once, in the main process, before all suites. */
export async function mochaGlobalSetup(): Promise<void> {
  const needsEngines = !hasOnlyUnitTests();
  // Tests run the commands and the rebuild process from `dist`.
  if (needsEngines) execFileSync(process.execPath, ['scripts/setup.mjs', '--built'], { stdio: 'inherit' });
  beginRun();
  if (!needsEngines) return;
  useFastStartingJvm();
  await provideEngines();
}

/** Runs in each process that runs suites: after its last one, or with `--parallel` after each file. */
export const mochaHooks = {
  afterAll(): void {
    addTotals();
    expect(findLeaks()).to.deep.equal([]);
  },
};

/** Runs after the last test, even if tests failed. */
export async function mochaGlobalTeardown(): Promise<void> {
  printTotals();
  try {
    await removeSharedSnapshot();
  } finally {
    await stopEngines();
    endRun();
  }
}
