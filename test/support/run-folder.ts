import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const VARIABLE = 'TEST_RUN';

/** In the main process: gives the run an id and a temporary folder, which its workers inherit. */
export function beginRun(): void {
  process.env[VARIABLE] = randomBytes(4).toString('hex');
  mkdirSync(inRunFolder());
}

/** In the main process, after all tests. */
export function endRun(): void {
  rmSync(inRunFolder(), { recursive: true });
}

/** Unique among the runs on the same engines. */
export function runId(): string {
  return process.env[VARIABLE] ?? 'none';
}

/** A path in the folder of the run. */
export function inRunFolder(name = ''): string {
  return join(tmpdir(), `package-registry-search-run-${runId()}`, name);
}

/** Creates a folder, which is removed after the run. */
export function newFolder(): string {
  return mkdtempSync(inRunFolder('folder-'));
}
