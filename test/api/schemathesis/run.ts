import { execFile } from 'node:child_process';
import { hash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { findPaths } from '../../../dev/paths.js';
import { datasetServer, heldBack } from '../../support/dataset-server.js';
import { bundledPackages, datasetFile, toCsv } from '../../support/datasets.js';
import { provideEngines, stopEngines, useFastStartingJvm } from '../../support/engines.js';
import { newSlug, request, startService, type Service } from '../../support/service.js';
import { waitFor } from '../../support/wait-for.js';

/**
 * `npm test -- schemathesis` tests a running service against its own `/openapi.json` with schemathesis,
 * which generates valid and invalid requests from the document and checks every response against it. The last
 * line is `N passed, N failed`, counted in requests.
 */

/** A run takes 3 to 15 s; a longer one is stopped and counts as failed. In milliseconds. */
const RUN_TIMEOUT_MS = 180_000;

/** Enough for every operation and every kind of page; loads in a second. */
const PACKAGES = 2000;

/** The secret of both secret endpoints. */
const SECRET = 'schemathesis-change-me';

const CONFIG = fileURLToPath(new URL('schemathesis.toml', import.meta.url));
const HOOKS = fileURLToPath(new URL('hooks.py', import.meta.url));
const REQUIREMENTS = fileURLToPath(new URL('requirements.txt', import.meta.url));

const execute = promisify(execFile);

/** A state of the service and the tests to run in it. */
interface Run {
  name: string;
  service: Service;
  /** Generated cases per operation, in addition to the boundary cases of its schema. */
  maxExamples?: number;
  args?: string[];
  /** Appended to the configuration. */
  config?: string;
}

/** The part of schemathesis' JSON report that is read. */
interface Report {
  complete: boolean;
  exit_code: number;
  test_cases: { generated: number; with_failures: number; without_checks: number; errored: number };
}

/** Creates the virtual environment of the requirements, once. @returns the path of its Python. */
async function installPython(): Promise<string> {
  const digest = hash('sha256', await readFile(REQUIREMENTS)).slice(0, 12);
  const folder = join(findPaths(process.env).programs, `schemathesis-${digest}`);
  const running = execute('scripts/python-environment.sh', [folder, '--requirement', REQUIREMENTS]);
  running.child.stderr?.pipe(process.stderr);
  return (await running).stdout.trim();
}

/** Runs schemathesis once. @returns numbers of requests, and its output about the failed ones. */
async function test(python: string, { name, service, maxExamples = 1, args = [], config = '' }: Run) {
  // schemathesis keeps state for later runs in the working directory.
  const folder = await mkdtemp(join(tmpdir(), 'schemathesis-'));
  try {
    const file = join(folder, 'schemathesis.toml');
    await writeFile(file, `hooks = ${JSON.stringify(HOOKS)}\n${await readFile(CONFIG, 'utf8')}\n${config}\n`);
    const report = join(folder, 'report.json');
    const command = ['-m', 'schemathesis.cli', '--config-file', file, 'run', `${service.url}/openapi.json`];
    const options = ['--checks', 'all', '--max-examples', String(maxExamples), '--no-color'];
    command.push(...options, '--report', 'json', '--report-json-path', report, ...args);
    const { stdout = '', stderr = '' } = await execute(python, command, {
      cwd: folder,
      timeout: RUN_TIMEOUT_MS,
    }).catch((error: unknown) => error as { stdout?: string; stderr?: string });
    // A run that times out leaves an empty report, or none.
    const written = existsSync(report) ? await readFile(report, 'utf8') : '';
    const counted = written === '' ? undefined : (JSON.parse(written) as Report);
    const { generated = 0, with_failures = 0, without_checks = 0, errored = 0 } = counted?.test_cases ?? {};
    const isClean = counted?.complete === true && counted.exit_code === 0 && generated > 0;
    const found = with_failures + errored;
    const passed = generated - found - without_checks;
    // An incomplete run without findings counts as one failure.
    const failed = isClean ? found : Math.max(found, 1);
    console.log(`${name}: ${passed} passed, ${failed} failed`);
    return { passed, failed, findings: failed === 0 ? [] : [`  ${name}:\n${stdout}${stderr}`] };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Starts the service in each state and runs schemathesis on it. */
async function testAll(python: string) {
  useFastStartingJvm();
  await provideEngines();
  const dataset = await datasetFile(toCsv(bundledPackages().slice(0, PACKAGES)));
  const held = heldBack(() => 'name\n');
  const web = await datasetServer(held.listener);
  const services: Service[] = [];
  const start = async (env: Record<string, string>, slug?: string) => {
    const service = await startService({ REBUILD_SECRET: SECRET, BYPASS_SECRET: SECRET, ...env }, slug);
    services.push(service);
    return service;
  };
  try {
    const ready = await start({ DATASET_URL: dataset.url });
    await waitFor(() => ready.server.snapshots.state === 'present', 'the first snapshot', 60_000);
    const limited = await start({ DATASET_URL: dataset.url, RATE_LIMIT_POINTS: '5' }, ready.slug);
    const initializing = await start({ DATASET_URL: web.url }, newSlug());
    const { body } = await request(`${ready.url}/get-bypass?secret=${SECRET}`);
    const bypass = ['--header', `X-Bypass-Token: ${body.bypass_token}`];
    const secretEndpoints = ['--include-path', '/rebuild', '--include-path', '/get-bypass'];
    // The state decides these responses, not the values: the boundary cases are enough.
    const boundaries = ['--phases', 'coverage'];
    const runs: Run[] = [
      { name: 'ready, with a bypass token', service: ready, maxExamples: 50, args: bypass },
      {
        name: 'with the right secret',
        service: ready,
        maxExamples: 20,
        args: [...secretEndpoints, '--mode', 'positive'],
        config: `[parameters]\nsecret = "${SECRET}"`,
      },
      { name: 'over the limits', service: limited, args: boundaries },
      { name: 'initializing', service: initializing, args: [...boundaries, ...bypass] },
    ];
    const results: Awaited<ReturnType<typeof test>>[] = [];
    for (const run of runs) results.push(await test(python, run));
    return results;
  } finally {
    held.release();
    for (const service of services.reverse()) await service.end();
    await web.close();
    await dataset.remove();
    await stopEngines();
  }
}

try {
  const results = await testAll(await installPython());
  const sum = (part: 'passed' | 'failed') => results.reduce((total, result) => total + result[part], 0);
  const [passed, failed] = [sum('passed'), sum('failed')];
  const findings = results.flatMap((result) => result.findings);
  // Same heading as Mocha's: scripts/test-runs.sh repeats what follows it.
  if (failed > 0) console.log([`  ${failed} failing`, ...findings].join('\n\n'));
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
