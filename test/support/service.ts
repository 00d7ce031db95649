import { randomBytes } from 'node:crypto';
import { closeSync, fstatSync, openSync, readSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Client } from '@elastic/elasticsearch';
import { secretsIn } from '../../src/config/secrets.js';
import { readConfig } from '../../src/config/config.js';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
import { createLogger, type Logger } from '../../src/util/log.js';
import { UNLOCKED } from './step.js';
import { createRebuildContext } from '../../src/rebuild/rebuild-context.js';
import { rebuild, type RebuildOptions } from '../../src/rebuild/pipeline.js';
import { aliasOf, isSnapshotOf } from '../../src/snapshot/index-names.js';
import { startServer, type RunningServer } from '../../src/server.js';
import { bundledPackages, datasetFile, toCsv, type DatasetFile } from './datasets.js';
import { engines } from './engines.js';
import { removeRegistry, sharedDataset, sharedSlug } from './registries.js';
import { keepSecret, searchForSecrets } from './secret-scanner.js';
import { contractOf } from './openapi-contract.js';
import { waitFor } from './wait-for.js';

export const REBUILD_SECRET = keepSecret('rebuild-change-me');
/** Path that requests a rebuild. */
export const REBUILD = `/rebuild?secret=${REBUILD_SECRET}`;
export const BYPASS_SECRET = keepSecret('bypass-change-me');
const API_KEY = keepSecret('api-key-change-me');
const REBUILD_API_KEY = keepSecret('rebuild-api-key-change-me');

/** The most recent log lines of all services of this run, parsed. */
export const logLines: Record<string, unknown>[] = [];
const KEPT_LOG_LINES = 1000;

const logStream = {
  write: (line: string) => {
    searchForSecrets('logLines', line);
    logLines.push(JSON.parse(line) as Record<string, unknown>);
    if (logLines.length > KEPT_LOG_LINES) logLines.shift();
  },
};

/** A response as a client sees it. */
export interface TestResponse {
  status: number;
  headers: Headers;
  text: string;
  /** The body, parsed if it is JSON; undefined if there is none. */
  body: any; // eslint-disable-line @typescript-eslint/no-explicit-any -- tests assert on its shape
}

interface BasicAuth {
  username: string;
  password: string;
}

/** The real app on the real engines, reached over HTTP. */
export interface Service {
  slug: string;
  alias: string;
  url: string;
  /** The variables that lead other processes to the same registry. */
  env: Record<string, string>;
  /** For `metricsUrl`: what a replica serves and rebuilds is read by the functions below. */
  server: RunningServer;
  elasticsearch: Client;
  /** Sends a request and asserts that the response matches the OpenAPI document. */
  get(path: string, init?: RequestInit): Promise<TestResponse>;
  /** Requests a rebuild and waits for it to end. @returns the response to the request. */
  rebuild(params?: string): Promise<TestResponse>;
  /** The id of the snapshot that it serves; empty if there is none. */
  snapshot(): Promise<string>;
  /** Reads the aliases at once, instead of within a second. */
  refresh: () => Promise<void>;
  /** Reads the aliases no longer, so that it does not see the next flip. */
  stopPolling(): void;
  /** How many rebuilds of this replica have ended, by their outcome. */
  outcomes: () => Readonly<Record<'rebuilt' | 'unchanged' | 'stopped' | 'failed', number>>;
  /** Why its last rebuild failed; undefined if that succeeded. */
  failure(): string | undefined;
  isRebuilding(): boolean;
  /** Waits until no rebuild of this replica runs. */
  idle(timeoutMs?: number): Promise<void>;
  /** Waits until a rebuild of this replica has loaded some rows. */
  loading(): Promise<void>;
  /** The indices of the registry in any state, without those of registries with a similar name. */
  indices(): Promise<string[]>;
  /** Stops this replica and keeps the indices of the registry. */
  stop(): Promise<void>;
  /** Stops the server and removes its indices. */
  end(): Promise<void>;
}

/** A unique name for each suite: prefix of its index, alias and Redis keys. */
export function newSlug(): string {
  return `t${randomBytes(4).toString('hex')}`;
}

/** Timeout of a hook that starts a service. In milliseconds. */
const START_TIMEOUT_MS = 60_000;

/** The engines of the run and this registry. */
export function environmentOf(slug: string): Record<string, string> {
  const { elasticsearch, redis } = engines();
  return { ELASTICSEARCH_URL: elasticsearch.url, REDIS_URL: redis.url, REGISTRY_SLUG: slug };
}

/** Variables of a service: limits are off unless `env` turns them on. */
function variablesOf(slug: string, env: Record<string, string>): Record<string, string> {
  return {
    ...environmentOf(slug),
    PORT: '0',
    REBUILD_SECRET,
    BYPASS_SECRET,
    RATE_LIMIT_POINTS: '0',
    ELASTICSEARCH_API_KEY: API_KEY,
    ELASTICSEARCH_REBUILD_API_KEY: REBUILD_API_KEY,
    ...env,
  };
}

/** Logs everything to `logLines`. */
function logOf(variables: Record<string, string>): Logger {
  return createLogger('trace', { secrets: secretsIn(variables), destination: logStream });
}

/** The log of the rebuild processes of a server, in a file without a name. Their lines become part of `logLines`. */
function childLogOf() {
  const file = join(tmpdir(), `rebuilds-${randomBytes(8).toString('hex')}.log`);
  const descriptor = openSync(file, 'ax+');
  unlinkSync(file);
  let isOpen = true;
  let position = 0;
  const read = () => {
    if (!isOpen) return;
    const written = Buffer.alloc(fstatSync(descriptor).size - position);
    readSync(descriptor, written, 0, written.length, position);
    const lines = written.subarray(0, written.lastIndexOf('\n') + 1);
    position += lines.length;
    for (const line of lines.toString().split('\n').filter(Boolean)) logStream.write(line);
  };
  const close = () => {
    read();
    if (isOpen) closeSync(descriptor);
    isOpen = false;
  };
  return { descriptor, read, close };
}

/**
 * Starts a server, which may not be ready yet.
 * @param auth credentials of the test's own client, if Elasticsearch requires them.
 */
export async function startService(
  env: Record<string, string>,
  slug = newSlug(),
  auth?: BasicAuth,
): Promise<Service> {
  const variables = variablesOf(slug, env);
  const config = readConfig(variables);
  const childLog = childLogOf();
  const server = await startServer(config, {
    log: logOf(variables),
    env: variables,
    output: childLog.descriptor,
  });
  const elasticsearch = new Client({
    nodes: [...config.elasticsearch.nodes],
    ...(auth === undefined ? {} : { auth }),
  });
  const alias = aliasOf(slug);
  const promises = contractOf((await request(`${server.url}/openapi.json`)).text);
  const get = async (path: string, init?: RequestInit) => {
    const answer = await request(`${server.url}${path}`, init);
    promises.check(init?.method ?? 'GET', path, answer);
    return answer;
  };
  const isRebuilding = () => server.rebuilds.isRunning;
  const idle = async (timeoutMs = 60_000) => {
    await waitFor(() => !isRebuilding(), 'the rebuild to end', timeoutMs);
    childLog.read();
  };
  const stopServer = async () => {
    await server.stop();
    childLog.close();
  };
  const stop = async () => {
    await stopServer();
    await elasticsearch.close();
  };
  return {
    slug,
    alias,
    url: server.url,
    env: environmentOf(slug),
    server,
    elasticsearch,
    get,
    snapshot: async () => (await get('/stats')).headers.get('X-Snapshot') ?? '',
    refresh: () => server.snapshots.refresh(),
    stopPolling: () => server.snapshots.stop(),
    outcomes: () => server.rebuilds.counts,
    failure: () => server.rebuilds.last?.reason,
    isRebuilding,
    rebuild: async (params = '') => {
      const answer = await get(REBUILD + params);
      await idle();
      return answer;
    },
    idle,
    loading: () =>
      waitFor(
        async () => {
          const { phase, rows } = (await server.rebuilds.state()) ?? {};
          return phase === 'loading' && (rows ?? 0) > 0;
        },
        'the load to start',
        60_000,
      ),
    indices: async () => {
      const alike = Object.keys(await elasticsearch.indices.get({ index: `${alias}-*` }));
      return alike.filter((index) => isSnapshotOf(alias, index));
    },
    stop,
    end: async () => {
      await stopServer();
      await removeRegistry(slug, elasticsearch);
      await elasticsearch.close();
    },
  };
}

/**
 * Rebuilds in this process: a server would start another process, which takes longer than the rest of a small rebuild.
 * @param env variables beside those of every service.
 * @returns the new index; undefined if there was nothing to build.
 * @throws why it failed.
 */
export async function rebuildHere(
  env: Record<string, string>,
  slug: string,
  options: Partial<Pick<RebuildOptions, 'force' | 'skipIf'>> = {},
): Promise<string | undefined> {
  const variables = variablesOf(slug, env);
  const context = createRebuildContext(readConfig(variables), logOf(variables));
  try {
    return (await rebuild(context, { force: false, ...options, ...UNLOCKED }))?.index;
  } finally {
    await context.close();
  }
}

/** The service and dataset of a suite; available only within its tests. */
export interface SuiteService {
  readonly service: Service;
  readonly dataset: DatasetFile;
  /**
   * Serves other packages, or another document, without the rebuild process.
   * @param changed variables of this rebuild that differ from those of the service.
   * @returns the id of the new snapshot.
   */
  publish(packages: readonly PackageEntry[] | string, changed?: Record<string, string>): Promise<string>;
}

/**
 * Starts a service on its own dataset file for the calling suite, and removes both at the end of the suite.
 * @param env is read when the service starts.
 */
export function useService(
  packages: () => PackageEntry[],
  env = (): Record<string, string> => ({}),
  { slug = newSlug(), auth }: { slug?: string; auth?: BasicAuth } = {},
): SuiteService {
  let variables: Record<string, string>;
  let dataset: DatasetFile | undefined;
  let service: Service | undefined;
  before(async function () {
    this.timeout(START_TIMEOUT_MS);
    dataset = await datasetFile(toCsv(packages()));
    variables = { DATASET_URL: dataset.url, ...env() };
    await rebuildHere(variables, slug, { force: true });
    service = await startService(variables, slug, auth);
  });
  after(async () => {
    await service?.end();
    await dataset?.remove();
  });
  return {
    get service() {
      return started(service);
    },
    get dataset() {
      return started(dataset);
    },
    async publish(packages, changed = {}) {
      const { snapshots } = started(service).server;
      const before = snapshots.current?.id;
      await started(dataset).write(typeof packages === 'string' ? packages : toCsv(packages));
      await rebuildHere({ ...variables, ...changed }, slug, { force: true });
      await snapshots.refresh();
      const { id } = snapshots.current ?? {};
      if (id === undefined || id === before) throw new Error('the new snapshot is not served');
      return id;
    },
  };
}

/** The packages that `useSharedService` serves: more than the maximum of results contain "lib". */
export const SHARED_PACKAGES = bundledPackages().filter(
  ({ name }, i) => i % 32 === 0 || name.includes('redis'),
);

/**
 * For suites that only read: starts a replica on a snapshot that all of them share. The first one builds it.
 * @param env is read when the service starts.
 */
export function useSharedService(env = (): Record<string, string> => ({})): { readonly service: Service } {
  let service: Service | undefined;
  before(async function () {
    this.timeout(START_TIMEOUT_MS);
    const path = sharedDataset();
    const variables = { DATASET_URL: pathToFileURL(path).href, ...env() };
    if (isFirstToWrite(path, toCsv(SHARED_PACKAGES))) await rebuildHere(variables, sharedSlug());
    else await waitForSharedSnapshot();
    service = await startService(variables, sharedSlug());
  });
  after(() => service?.stop());
  return {
    get service() {
      return started(service);
    },
  };
}

/** Of all processes that run suites, one writes the file and builds the shared snapshot. */
function isFirstToWrite(path: string, content: string): boolean {
  try {
    writeFileSync(path, content, { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return false;
  }
}

/** Until the process that builds it serves it. */
async function waitForSharedSnapshot(): Promise<void> {
  const client = new Client({ node: engines().elasticsearch.url });
  const name = aliasOf(sharedSlug());
  await waitFor(() => client.indices.existsAlias({ name }), 'the shared snapshot', START_TIMEOUT_MS);
  await client.close();
}

function started<T>(part: T | undefined): T {
  if (part === undefined) throw new Error('the service of a suite is available only within its tests');
  return part;
}

/** Sends one request and reads the whole response. */
export async function request(url: string, init?: RequestInit): Promise<TestResponse> {
  const response = await fetch(url, init);
  const text = await response.text();
  const isJson = /[/+]json\b/.test(response.headers.get('Content-Type') ?? '');
  const body = text === '' ? undefined : isJson ? (JSON.parse(text) as unknown) : text;
  const token = (body as { bypass_token?: string } | undefined)?.bypass_token;
  if (token !== undefined) keepSecret(token);
  searchForSecrets('responses', `${text}\n${JSON.stringify([...response.headers])}`, token);
  return { status: response.status, headers: response.headers, text, body };
}
