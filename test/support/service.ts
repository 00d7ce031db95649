import { randomBytes } from 'node:crypto';
import { Client } from '@elastic/elasticsearch';
import { secretsIn } from '../../src/config-secrets.js';
import { readConfig } from '../../src/config.js';
import type { PackageEntry } from '../../src/search/package-document.js';
import { createLogger } from '../../src/log.js';
import { aliasOf, isBuildOf, isChangesOf } from '../../src/search/index-names.js';
import { startServer, type RunningServer } from '../../src/server.js';
import { datasetFile, toCsv, type DatasetFile } from './datasets.js';
import { engines, ENGINES_TIMEOUT_MS } from './engines.js';
import { keepSecret, searchForSecrets } from './secret-scanner.js';
import { OpenApiContract } from './openapi-contract.js';
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
  server: RunningServer;
  elasticsearch: Client;
  /** Sends a request and asserts that the response matches the OpenAPI document. */
  get(path: string, init?: RequestInit): Promise<TestResponse>;
  /** Requests a rebuild and waits for it to end. @returns the response to the request. */
  rebuild(params?: string): Promise<TestResponse>;
  /** Waits until no rebuild of this replica runs. */
  idle(timeoutMs?: number): Promise<void>;
  /** Waits until a rebuild of this replica has loaded some rows. */
  loading(): Promise<void>;
  /** The builds of the registry in any state, without those of registries with a similar name. */
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

/**
 * Starts a server, which may not be ready yet. Limits are off unless `env` turns them on.
 * @param auth credentials of the test's own client, if Elasticsearch requires them.
 */
export async function startService(
  env: Record<string, string>,
  slug = newSlug(),
  auth?: BasicAuth,
): Promise<Service> {
  const { elasticsearch: engine, redis } = await engines();
  const variables = {
    PORT: '0',
    ELASTICSEARCH_URL: engine.url,
    REDIS_URL: redis.url,
    REGISTRY_SLUG: slug,
    REBUILD_SECRET,
    BYPASS_SECRET,
    RATE_LIMIT_POINTS: '0',
    ELASTICSEARCH_API_KEY: API_KEY,
    ELASTICSEARCH_REBUILD_API_KEY: REBUILD_API_KEY,
    ...env,
  };
  const config = readConfig(variables);
  const secrets = secretsIn(variables);
  const log = createLogger('trace', false, { secrets, destination: logStream });
  const server = await startServer(config, { log, secrets });
  const elasticsearch = new Client({
    nodes: [...config.elasticsearch.nodes],
    ...(auth === undefined ? {} : { auth }),
  });
  const alias = aliasOf(slug);
  const document = await request(`${server.url}/openapi.json`);
  const promises = new OpenApiContract(document.body as ConstructorParameters<typeof OpenApiContract>[0]);
  const get = async (path: string, init?: RequestInit) => {
    const answer = await request(`${server.url}${path}`, init);
    promises.check(init?.method ?? 'GET', path, answer);
    return answer;
  };
  const idle = (timeoutMs = 60_000) =>
    waitFor(() => server.rebuilds.progress === undefined, 'the rebuild to end', timeoutMs);
  const indices = async () => {
    const alike = Object.keys(await elasticsearch.indices.get({ index: `${alias}-*` }));
    return alike.filter((index) => isBuildOf(alias, index));
  };
  return {
    slug,
    alias,
    url: server.url,
    server,
    elasticsearch,
    get,
    rebuild: async (params = '') => {
      const answer = await get(REBUILD + params);
      await idle();
      return answer;
    },
    idle,
    loading: () =>
      waitFor(
        () => {
          const { phase, rows } = server.rebuilds.progress ?? {};
          return phase === 'loading' && (rows ?? 0) > 0;
        },
        'the load to start',
        60_000,
      ),
    indices,
    stop: async () => {
      await server.stop();
      await elasticsearch.close();
    },
    end: async () => {
      await server.stop();
      const changes = Object.keys(await elasticsearch.indices.get({ index: `${alias}-changes-*` }));
      const left = [...(await indices()), ...changes.filter((index) => isChangesOf(alias, index))];
      if (left.length > 0) await elasticsearch.indices.delete({ index: left });
      await elasticsearch.close();
    },
  };
}

/** Starts a server and waits for its first snapshot. */
async function startReadyService(
  env: Record<string, string>,
  slug?: string,
  auth?: BasicAuth,
): Promise<Service> {
  const service = await startService(env, slug, auth);
  const { generations, rebuilds } = service.server;
  await waitFor(
    () => generations.engine === 'present' || rebuilds.lastFailure !== undefined,
    'the first snapshot',
    120_000,
  );
  if (generations.engine === 'present') {
    // The first rebuild ends a little after its snapshot goes live, and blocks any other until then.
    await service.idle();
    return service;
  }
  await service.end();
  throw new Error(`the first snapshot failed: ${rebuilds.lastFailure?.reason}`);
}

/** The service and dataset of a suite; available only within its tests. */
export interface SuiteService {
  service: Service;
  dataset: DatasetFile;
}

/**
 * Starts a service on its own dataset file for the calling suite, and removes both at the end of the suite.
 * @param env is read when the service starts.
 */
export function useService(
  packages: () => PackageEntry[],
  env = (): Record<string, string> => ({}),
  { slug, auth }: { slug?: string; auth?: BasicAuth } = {},
): SuiteService {
  let dataset: DatasetFile | undefined;
  let service: Service | undefined;
  before(async function () {
    this.timeout(ENGINES_TIMEOUT_MS);
    dataset = await datasetFile(toCsv(packages()));
    service = await startReadyService({ DATASET_URL: dataset.url, ...env() }, slug, auth);
  });
  after(async () => {
    await service?.end();
    await dataset?.remove();
  });
  const started = <T>(part: T | undefined) => {
    if (part === undefined) throw new Error('the service of a suite is available only within its tests');
    return part;
  };
  return {
    get service() {
      return started(service);
    },
    get dataset() {
      return started(dataset);
    },
  };
}

/** Deletes the indices of registries whose services ran in separate processes. */
export async function removeIndices(slugs: readonly string[]): Promise<void> {
  const client = new Client({ node: (await engines()).elasticsearch.url });
  for (const slug of slugs) {
    const indices = Object.keys(await client.indices.get({ index: `${slug}-*` }));
    if (indices.length > 0) await client.indices.delete({ index: indices });
  }
  await client.close();
}

/** Sends one request and reads the whole response. */
export async function request(url: string, init?: RequestInit): Promise<TestResponse> {
  const response = await fetch(url, init);
  const text = await response.text();
  const isXml = response.headers.get('Content-Type')?.includes('xml') ?? false;
  const body = text === '' ? undefined : isXml ? text : (JSON.parse(text) as unknown);
  const token = (body as { bypass_token?: string } | undefined)?.bypass_token;
  if (token !== undefined) keepSecret(token);
  searchForSecrets('answers', `${text}\n${JSON.stringify([...response.headers])}`, token);
  return { status: response.status, headers: response.headers, text, body };
}
