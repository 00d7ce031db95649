import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Service } from '../dev/service.js';
import { startService } from '../dev/services.js';
import { findPaths, makeFolder, type Identity } from '../dev/paths.js';

const HEAP = '2g';

interface Bench {
  elasticsearch: Service;
  redis: Service;
  /** Temporary folder for datasets. */
  input: string;
  /** The user that engines run as; undefined for the current user. */
  runAs: Identity | undefined;
}

/** Runs `work` on a real Elasticsearch and a real Redis, then stops them and deletes their data. */
export async function withEngines(work: (bench: Bench) => Promise<void>): Promise<void> {
  const paths = findPaths(process.env);
  const name = join(tmpdir(), 'package-registry-search-bench-');
  const folder = makeFolder(await mkdtemp(name), paths.runAs);
  const print = (line: string) => console.log(line);
  const { signal } = new AbortController();
  const options = {
    paths,
    folder,
    volume: undefined,
    heap: HEAP,
    onUsualPorts: false,
    env: process.env,
    log: print,
    signal,
  };
  const elasticsearch = await startService('elasticsearch', options);
  const redis = await startService('redis', options);
  const input = await mkdtemp(name);
  try {
    await work({ elasticsearch, redis, input, runAs: paths.runAs });
  } finally {
    await Promise.all([elasticsearch.stop(), redis.stop()]);
    await rm(folder, { recursive: true, force: true });
    await rm(input, { recursive: true, force: true });
  }
}

/** The processor time used by Elasticsearch so far, in milliseconds. */
export async function elasticsearchTime(url: string): Promise<number> {
  const { nodes } = (await (await fetch(`${url}/_nodes/stats/process`)).json()) as {
    nodes: Record<string, { process: { cpu: { total_in_millis: number } } }>;
  };
  return Object.values(nodes).reduce((sum, { process: { cpu } }) => sum + cpu.total_in_millis, 0);
}

/** The size on disk of one copy of an index, in bytes. */
export async function bytesOf(elasticsearch: string, index: string): Promise<number> {
  const stats = (await (await fetch(`${elasticsearch}/${index}/_stats/store`)).json()) as {
    _all: { primaries: { store: { size_in_bytes: number } } };
  };
  return stats._all.primaries.store.size_in_bytes;
}
