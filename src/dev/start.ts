import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { basename } from 'node:path';
import lockfile from 'proper-lockfile';
import { ConnectionCheckError, checkElasticsearch, checkRedis } from '../clients/connection-check.js';
import { secretsIn } from '../config-secrets.js';
import { ConfigError, readConfig, VARIABLES, withoutEmpty, type Config } from '../config.js';
import { describeCrash, endOnCrash } from '../uncaught-errors.js';
import { createLogger } from '../log.js';
import { createRedactor } from '../redact.js';
import { startServer, type RunningServer } from '../server.js';
import { SetupError } from './service.js';
import { startElasticsearch, startRedis } from './services.js';
import { ProgressBar } from '../cli/progress-bar.js';
import { onStopSignal } from '../cli/signals.js';
import { findPaths } from './paths.js';

/**
 * `npm start`: runs the whole service on a bare machine. Stops what it started on Ctrl-C, SIGTERM and
 * failures.
 */

const HEAP = '1g';
/** How long the first load may take to begin. The load itself fails if it makes no progress. */
const LOAD_START_TIMEOUT_MS = 15 * 60_000;

const print = (line: string) => console.log(line);

/** Cleanup steps, run in reverse order. */
const cleanups: (() => Promise<void>)[] = [];

async function start(env: NodeJS.ProcessEnv, signal: AbortSignal): Promise<void> {
  // Validates the whole configuration before anything is started.
  const draft = readConfig({ ELASTICSEARCH_URL: 'http://127.0.0.1', ...withoutEmpty(env) });
  await assertPortFree('PORT', draft.port, draft.host);
  if (draft.metricsPort !== undefined) await assertPortFree('METRICS_PORT', draft.metricsPort, draft.host);

  const addresses = await startServices(env, draft, signal);
  signal.throwIfAborted();

  const config = readConfig({
    LOG_LEVEL: 'warn',
    ...withoutEmpty(env),
    ...addresses,
  });
  const bar = new ProgressBar(process.stdout);
  const secrets = secretsIn(env);
  const log = createLogger(config.logLevel, process.stdout.isTTY, { secrets });
  const server = await startServer(config, { log, secrets, onRebuild: bar.show });
  cleanups.push(async () => {
    bar.close();
    await server.stop();
  });
  await waitUntilReady(server, signal);
  bar.end();
  printGreeting(server, exportOf({ ...withoutEmpty(env), ...addresses }));
}

/** Starts the services whose addresses are not set. @returns their addresses, as variables. */
async function startServices(
  env: NodeJS.ProcessEnv,
  draft: Config,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  const { ELASTICSEARCH_URL: elasticsearch, REDIS_URL: redis } = withoutEmpty(env);
  if (elasticsearch !== undefined) await checkElasticsearch(draft.elasticsearch);
  if (redis !== undefined) await checkRedis(redis, draft.registry.slug);
  if (elasticsearch !== undefined && redis !== undefined) return {};

  const paths = findPaths(env);
  await lockFolder(paths.data);
  const options = {
    paths,
    folder: paths.data,
    volume: volumeOf(paths.data),
    heap: HEAP,
    onUsualPorts: true,
    env,
    log: print,
    signal,
  };
  const addresses: Record<string, string> = {};
  if (elasticsearch === undefined) {
    addresses['ELASTICSEARCH_URL'] = await startService('Elasticsearch', () => startElasticsearch(options));
  }
  signal.throwIfAborted();
  if (redis === undefined) addresses['REDIS_URL'] = await startService('Redis', () => startRedis(options));
  return addresses;
}

/** Starts a service and registers its cleanup. @returns its address. */
async function startService(name: string, start: () => ReturnType<typeof startRedis>): Promise<string> {
  print(`Starting ${name} …`);
  const engine = await start();
  cleanups.push(() => engine.stop());
  print(`  ${engine.description} at ${engine.url}`);
  return engine.url;
}

/** Allows only one `npm start` at a time to use the data. */
async function lockFolder(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const lock = () => lockfile.lock(folder, { stale: 10_000, retries: 0 });
  const release = await lock()
    .catch(async () => {
      print('Waiting for another `npm start` of this folder to stop …');
      // Longer than the lock of a killed process takes to go stale.
      return lockfile.lock(folder, { stale: 10_000, retries: { retries: 12, factor: 1, minTimeout: 1000 } });
    })
    .catch(() => {
      throw new SetupError('another `npm start` of this folder is running: stop it first');
    });
  cleanups.push(release);
}

function volumeOf(folder: string): string {
  return `package-registry-search-${basename(folder)}`;
}

async function assertPortFree(variable: string, port: number, host: string): Promise<void> {
  const probe = createServer();
  try {
    probe.listen(port, host);
    await once(probe, 'listening');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new SetupError(
      code === 'EADDRINUSE'
        ? `port ${port} of ${host} is taken by another program: stop it, or use a free port with ${variable}=0 npm start`
        : `the service cannot listen (${message}): set ${variable} and HOST to a port and an address of this machine`,
    );
  }
  probe.close();
  await once(probe, 'close');
}

async function waitUntilReady({ generations, rebuilds }: RunningServer, signal: AbortSignal): Promise<void> {
  let deadline = Date.now() + LOAD_START_TIMEOUT_MS;
  while (generations.engine !== 'present') {
    signal.throwIfAborted();
    if (rebuilds.lastFailure !== undefined) {
      throw new SetupError(`the snapshot could not be loaded: ${rebuilds.lastFailure.reason}`);
    }
    if (generations.stateReason !== undefined) throw new SetupError(generations.stateReason);
    if (rebuilds.progress !== undefined) deadline = Date.now() + LOAD_START_TIMEOUT_MS;
    if (Date.now() > deadline) throw new SetupError('the snapshot was not loaded in time');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** The line for commands in another terminal, and a remark on the variables with secrets, which it leaves out. */
function exportOf(env: NodeJS.ProcessEnv): string {
  const given = VARIABLES.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const]));
  const isSecret = ([name, value]: readonly [string, string]) => secretsIn({ [name]: value }).length > 0;
  const quoted = (value: string) =>
    /^[\w./:@%+,=-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`;
  const line = given.filter((one) => !isSecret(one)).map(([name, value]) => `${name}=${quoted(value)}`);
  const secret = given.filter(isSecret).map(([name]) => name);
  return `export ${line.join(' ')}${secret.length === 0 ? '' : `\n  # as here: ${secret.join(', ')}`}`;
}

function printGreeting({ url, generations }: RunningServer, exported: string): void {
  const meta = generations.current?.meta;
  print(`
The API is at ${url}, with ${meta?.total.toLocaleString('en')} packages of ${meta?.source}. Try:

  ${url}/ in a browser
  curl '${url}/search?q=redis'
  curl '${url}/browse?page=1&limit=5'
  curl '${url}/health'

For npm run rebuild and the other commands, in another terminal:

  ${exported}

Ctrl-C stops everything that was started here.`);
}

async function cleanUp(complain: (message: string) => void): Promise<void> {
  for (let step = cleanups.pop(); step !== undefined; step = cleanups.pop()) {
    await step().catch((error: unknown) => complain((error as Error).message));
  }
}

async function main(env: NodeJS.ProcessEnv): Promise<void> {
  const secrets = secretsIn(env);
  endOnCrash(secrets);
  const redact = createRedactor(secrets);
  const complain = (message: string) => console.error(redact(message));
  const stopping = new AbortController();
  onStopSignal(() => {
    print('\nStopping …');
    stopping.abort();
  });
  try {
    await start(env, stopping.signal);
    if (!stopping.signal.aborted) await once(stopping.signal, 'abort');
  } catch (error) {
    if (!stopping.signal.aborted) {
      const expected =
        error instanceof SetupError || error instanceof ConfigError || error instanceof ConnectionCheckError;
      complain(expected ? `\n${error.message}` : describeCrash(error, secrets));
      process.exitCode = 1;
    }
  } finally {
    await cleanUp(complain);
  }
}

void main(process.env);
