import type { RebuildState } from '../src/rebuild/state.js';
import { aliasOf, rebuildsIndexOf } from '../src/snapshot/index-names.js';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { SingleBar } from 'cli-progress';
import { writeDataset } from '../test/fixtures/generated-dataset.js';
import { msearchRequest, parseResponse, type SearchBody } from '../src/elasticsearch/msearch.js';
import { NameSample, PAGE_SIZE, SAMPLE_SIZE } from '../src/search/name-sample.js';
import type { SnapshotMeta } from '../src/snapshot/snapshot-meta.js';
import { elasticsearchTime } from './engines.js';
import { BaselineClient } from './measure.js';
import { ServerProcess } from './processes.js';

/** `limit` of every measured search. */
export const LIMIT = 250;

export const SECRET = 'bench-change-me';

/** Environment of a service on a free port that computes every response: no cache, no limits. */
export function uncachedEnv(elasticsearch: string): Record<string, string> {
  return {
    ELASTICSEARCH_URL: elasticsearch,
    PORT: '0',
    CACHE_MAX_BYTES: '0',
    RATE_LIMIT_POINTS: '0',
    LOG_LEVEL: 'info',
  };
}

/** A registry of generated names, and the service that has loaded it. */
export interface Loaded {
  service: ServerProcess;
  slug: string;
  index: string;
  /** Time from the start of the service until it was ready. */
  seconds: number;
  /** Processor time of Elasticsearch during the load, in milliseconds. */
  engineTime: number;
}

interface LoadOptions {
  /** Environment of the service, which keeps serving the loaded names. */
  env: Record<string, string>;
  /** Folder of the dataset. */
  folder: string;
  /** Keeps the dataset file, for a rebuild. */
  keep?: boolean;
  slug?: string;
}

/** Starts a service that can rebuild from a file, and has metrics. @param env selects a registry that was loaded. */
export function startRebuildable(path: string, env: Record<string, string>): Promise<ServerProcess> {
  return ServerProcess.start('dist/main.js', {
    ...env,
    METRICS_PORT: '0',
    REBUILD_SECRET: SECRET,
    DATASET_URL: pathToFileURL(path).href,
  });
}

/** Loads `size` generated names with a new service. */
export async function load(
  size: number,
  { env, folder, keep = false, slug = `bench${size}` }: LoadOptions,
): Promise<Loaded> {
  const path = join(folder, `names-${size}.csv`);
  await writeDataset(path, size);
  const bar = new SingleBar({
    format: `  ${size.toLocaleString('en').padStart(10)} names {bar} {percentage}% {phase}`,
  });
  bar.start(size, 0, { phase: '' });
  const elasticsearch = env['ELASTICSEARCH_URL'] as string;
  const before = await elasticsearchTime(elasticsearch);
  const began = performance.now();
  const service = await ServerProcess.start('dist/main.js', {
    ...env,
    REGISTRY_SLUG: slug,
    DATASET_URL: pathToFileURL(path).href,
  });
  for (;;) {
    const health = await fetch(`${service.url}/health`);
    await health.arrayBuffer();
    if (health.ok) break;
    const state = await fetch(`${elasticsearch}/${rebuildsIndexOf(slug)}/_source/state`);
    const { phase, rows, last_failure } = (await state.json()) as RebuildState;
    if (last_failure !== undefined) throw new Error(`the load failed: ${last_failure.reason}`);
    bar.update(rows ?? 0, { phase });
    await pause(200);
  }
  const seconds = (performance.now() - began) / 1000;
  const engineTime = (await elasticsearchTime(elasticsearch)) - before;
  bar.update(size, { phase: `${Math.round(size / seconds).toLocaleString('en')} rows/s` });
  bar.stop();
  if (!keep) await rm(path);
  return { service, slug, seconds, engineTime, index: await servedIndex(elasticsearch, slug) };
}

async function servedIndex(elasticsearch: string, slug: string): Promise<string> {
  const alias = (await (await fetch(`${elasticsearch}/${aliasOf(slug)}`)).json()) as object;
  return Object.keys(alias)[0] as string;
}

/** Whether names that start with a query are likely to fill a page of an index, as the service estimates it. */
export async function estimateOf(
  elasticsearch: string,
  index: string,
): Promise<(q: string, limit: number) => boolean> {
  const client = new BaselineClient(elasticsearch, 1);
  const { count: total } = JSON.parse(await client.get(`/${index}/_count`)) as { count: number };
  const sample = new NameSample();
  const run = async (bodies: SearchBody[]) => {
    const { path, body } = msearchRequest(index, bodies);
    return parseResponse(await client.post(path, body), bodies.length, index);
  };
  for (let page = 0; page < SAMPLE_SIZE / PAGE_SIZE; page++)
    await sample.grow({ meta: { total, name_rule: 'exact' } as SnapshotMeta }, run);
  await client.close();
  return (q, limit) => sample.fills(q, limit, total);
}

export function searchPath({ q }: { q: string }): string {
  return `/search?limit=${LIMIT}&q=${encodeURIComponent(q)}`;
}

export function similarPath(name: string, limit = 10): string {
  return `/similar?limit=${limit}&name=${encodeURIComponent(name)}`;
}
