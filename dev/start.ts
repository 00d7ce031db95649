import { once } from 'node:events';
import { createServer } from 'node:net';
import { basename } from 'node:path';
import { setImmediate, setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { ConnectionCheckError, checkElasticsearch } from '../src/elasticsearch/connection-check.js';
import { PROXIES, secretsIn } from '../src/config/secrets.js';
import { ConfigError, readConfig, VARIABLES, withoutEmpty, type Config } from '../src/config/config.js';
import { describeCrash, endOnCrash, abortOnStopSignal, ignoreUserSignals } from '../src/util/process-end.js';
import { createLogger, terminalOutput } from '../src/util/log.js';
import { createRedactor } from '../src/util/redact.js';
import { startServer, type RunningServer } from '../src/server.js';
import type { RebuildState } from '../src/rebuild/state.js';
import { differingVariables } from '../src/rebuild/built-from.js';
import { checkRedis } from './check-redis.js';
import { SetupError } from './service.js';
import { KINDS, SERVICES, startService } from './services.js';
import { readArguments } from '../src/cli/command.js';
import { ProgressBar } from '../src/cli/progress-bar.js';
import { lockFolder } from './lock-folder.js';
import { serveAndWatch } from './watch.js';
import { describeFileError, findPaths } from './paths.js';

/**
 * `npm start`: runs the whole service on a bare machine. On Ctrl-C, SIGTERM and failures, stops everything that it has
 * started. With `--watch`, restarts the service, but not Elasticsearch and Redis, when a source file changes.
 */

const HEAP = '1g';
/** Timeout for the start of the first load, in milliseconds. The load itself fails if it makes no progress. */
const LOAD_START_TIMEOUT_MS = 15 * 60_000;

/** Variables that Node and downloads read, besides the service's variables. */
const READ_BY_OTHERS = [...PROXIES, 'NO_PROXY', 'no_proxy', 'NODE_EXTRA_CA_CERTS'];

const print = (line: string) => console.log(line);

/** Cleanup steps, run in reverse order. */
const cleanups: (() => Promise<unknown>)[] = [];

async function start(env: NodeJS.ProcessEnv, stopping: AbortController): Promise<void> {
  const { signal } = stopping;
  // Validates the whole configuration before anything is started.
  const draft = readConfig({ ELASTICSEARCH_URL: 'http://127.0.0.1', ...withoutEmpty(env) });
  await assertPortFree('PORT', draft.port, draft.host);
  if (draft.metricsPort !== undefined) await assertPortFree('METRICS_PORT', draft.metricsPort, draft.host);

  const addresses = await startEngines(env, draft, stopping);
  signal.throwIfAborted();

  if (process.argv.includes('--watch')) await serveAndWatch({ ...env, ...addresses }, signal);
  const variables = { LOG_LEVEL: 'warn', ...withoutEmpty(env), ...addresses };
  const config = readConfig(variables);
  const bar = new ProgressBar(process.stdout, signal);
  const secrets = secretsIn(env);
  const log = createLogger(config.logLevel, { secrets, destination: await terminalOutput() });
  const server = await startServer(config, { log, env: variables, onState: showIn(bar) }).catch(
    (error: unknown) => {
      const { syscall, port } = error as NodeJS.ErrnoException & { port?: number };
      // Another program may have taken the port after `assertPortFree`.
      if (syscall !== 'listen' || port === undefined) throw error;
      throw cannotListen(port === config.metricsPort ? 'METRICS_PORT' : 'PORT', port, config.host, error);
    },
  );
  cleanups.push(async () => {
    bar.close();
    await server.stop();
  });
  await waitUntilReady(server, signal);
  const differing = changedVariables(server, config, variables);
  if (differing !== '') {
    const isOwn = addresses['ELASTICSEARCH_URL'] !== undefined;
    const loads = isOwn ? 'loading the new one …' : 'npm run rebuild builds a new one.';
    print(`The served snapshot was built with another ${differing}: ${loads}`);
    if (isOwn) await loadAgain(server, signal);
  }
  bar.end();
  printGreeting(server, exportOf({ ...withoutEmpty(env), ...addresses }));
}

/** Shows the phase and the counts of a state. */
function showIn(bar: ProgressBar): (state: RebuildState) => void {
  return ({ phase, ...counts }) => {
    if (phase !== undefined) bar.show({ phase, ...counts });
  };
}

/** Starts the engines whose addresses are not set. @returns their addresses, as variables. */
async function startEngines(
  env: NodeJS.ProcessEnv,
  draft: Config,
  stopping: AbortController,
): Promise<Record<string, string>> {
  const given = withoutEmpty(env);
  if (given['ELASTICSEARCH_URL'] !== undefined) await checkElasticsearch(draft.elasticsearch);
  if (draft.redisUrl !== undefined) await checkRedis(draft.redisUrl, draft.registry.slug);
  const missing = KINDS.filter((kind) => given[SERVICES[kind].variable] === undefined);
  if (missing.length === 0) return {};

  const paths = findPaths(env);
  cleanups.push(await lockFolder(paths.data, print, (lost) => stopping.abort(lost)));
  const { signal } = stopping;
  const volume = `package-registry-search-${basename(paths.data)}`;
  const common = {
    paths,
    folder: paths.data,
    volume,
    heap: HEAP,
    onUsualPorts: true,
    env,
    log: print,
    signal,
  };
  const addresses: Record<string, string> = {};
  for (const kind of missing) {
    signal.throwIfAborted();
    const { name, variable } = SERVICES[kind];
    print(`Starting ${name} …`);
    const service = await startService(kind, common);
    cleanups.push(() => service.stop());
    print(`  ${service.description} at ${service.url}`);
    addresses[variable] = service.url;
  }
  return addresses;
}

async function assertPortFree(variable: string, port: number, host: string): Promise<void> {
  const probe = createServer();
  try {
    probe.listen(port, host);
    await once(probe, 'listening');
  } catch (error) {
    throw cannotListen(variable, port, host, error);
  }
  probe.close();
  await once(probe, 'close');
}

function cannotListen(variable: string, port: number, host: string, error: unknown): SetupError {
  const { code, message } = error as NodeJS.ErrnoException;
  return new SetupError(
    code === 'EADDRINUSE'
      ? `port ${port} of ${host} is taken by another program: stop it, or use a free port with ${variable}=0 npm start`
      : `the service cannot listen (${message}): set ${variable} and HOST to a port and an address of this machine`,
    { cause: error },
  );
}

async function waitUntilReady({ snapshots, rebuilds }: RunningServer, signal: AbortSignal): Promise<void> {
  let deadline = Date.now() + LOAD_START_TIMEOUT_MS;
  for (;;) {
    signal.throwIfAborted();
    if (snapshots.state === 'present') return;
    if (rebuilds.last?.outcome === 'failed')
      throw new SetupError(`the snapshot could not be loaded: ${rebuilds.last.reason}`);
    if (snapshots.stateReason !== undefined) throw new SetupError(snapshots.stateReason);
    if (rebuilds.isRunning) deadline = Date.now() + LOAD_START_TIMEOUT_MS;
    if (Date.now() > deadline) throw new SetupError('the snapshot was not loaded in time');
    await pause(100, undefined, { signal });
  }
}

/** The names of the variables in `env` that have changed since the served snapshot was built, joined by commas. */
function changedVariables({ snapshots }: RunningServer, config: Config, env: NodeJS.ProcessEnv): string {
  const from = snapshots.current?.meta.built_from;
  if (from === undefined) return '';
  return differingVariables(config, from)
    .filter((name) => env[name] !== undefined)
    .join(', ');
}

/**
 * Loads the dataset with `force`, because the new list may be much smaller than the served one. After a failure, the
 * current snapshot is still served.
 */
async function loadAgain({ rebuilds }: RunningServer, signal: AbortSignal): Promise<void> {
  const { ended } = await rebuilds.start({ force: true });
  if (ended === undefined) return;
  signal.throwIfAborted();
  // Does not wait for the load after an abort: `server.stop()` stops the load.
  await Promise.race([ended, once(signal, 'abort')]);
  signal.throwIfAborted();
  const { outcome, reason } = await ended;
  if (outcome === 'failed') print(`It could not be loaded: ${reason}`);
}

/** The `export` line for another terminal, and a comment that names the omitted variables with secrets. */
function exportOf(env: NodeJS.ProcessEnv): string {
  const names = [...VARIABLES, ...READ_BY_OTHERS];
  const given = names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const]));
  const isSecret = ([name, value]: readonly [string, string]) => secretsIn({ [name]: value }).length > 0;
  const quoted = (value: string) =>
    /^[\w./:@%+,=-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`;
  const line = given.filter((one) => !isSecret(one)).map(([name, value]) => `${name}=${quoted(value)}`);
  const secret = given.filter(isSecret).map(([name]) => name);
  return [
    // Without arguments, `export` would list all variables.
    ...(line.length === 0 ? [] : [`export ${line.join(' ')}`]),
    ...(secret.length === 0 ? [] : [`# as here: ${secret.join(', ')}`]),
  ].join('\n  ');
}

function printGreeting({ url, snapshots }: RunningServer, exported: string): void {
  const meta = snapshots.current?.meta;
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
  ignoreUserSignals();
  const redact = createRedactor(secrets);
  const complain = (message: string) => console.error(redact(message));
  const stopping = new AbortController();
  abortOnStopSignal().addEventListener('abort', () => {
    stopping.abort();
    print('\nStopping …');
  });
  let isReady = false;
  process.stdout.on('error', ({ message }) => {
    // Once the service is ready, it continues without output.
    if (!isReady) stopping.abort(new SetupError(`standard output cannot be written: ${message}`));
  });
  try {
    await start(env, stopping);
    // A failed write to standard output emits its `error` event asynchronously.
    await setImmediate();
    isReady = true;
    if (!stopping.signal.aborted) await once(stopping.signal, 'abort');
    stopping.signal.throwIfAborted();
  } catch (thrown) {
    const { aborted } = stopping.signal;
    const error: unknown = aborted ? stopping.signal.reason : thrown;
    if (!aborted || error instanceof SetupError) {
      const expected =
        error instanceof SetupError || error instanceof ConfigError || error instanceof ConnectionCheckError;
      complain(expected ? `\n${error.message}` : (describeFileError(error) ?? describeCrash(error, secrets)));
      process.exitCode = 1;
    }
  } finally {
    await cleanUp(complain);
  }
}

const USAGE = 'usage: npm start, or npm run dev, which restarts the service when a source changes';

const given = readArguments(USAGE, () => parseArgs({ options: { watch: { type: 'boolean' } } }));
if (given !== undefined) void main(process.env);
