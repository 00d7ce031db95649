import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { startRedis } from '../../src/dev/services.js';
import { findPaths, makeFolder } from '../../src/dev/paths.js';

/** The Redis of one suite, separate from the shared one. */
export interface IsolatedRedis {
  url: string;
  /** The test's own connection. */
  client: Redis;
  /** Sets settings as `redis-server --name value` would. */
  configure(settings: Readonly<Record<string, string>>): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a container if a Docker engine responds, otherwise the local Redis of `npm start`. */
export async function isolatedRedis(): Promise<IsolatedRedis> {
  const paths = findPaths(process.env);
  const folder = makeFolder(await mkdtemp(join(tmpdir(), 'package-registry-search-test-')), paths.runAs);
  const engine = await startRedis({
    paths,
    folder,
    volume: undefined,
    heap: '',
    onUsualPorts: false,
    env: process.env,
    log: (line) => console.log(line),
    signal: new AbortController().signal,
  });
  const client = new Redis(engine.url);
  client.on('error', () => undefined);
  return {
    url: engine.url,
    client,
    configure: async (settings) => {
      for (const [name, value] of Object.entries(settings)) await client.config('SET', name, value);
    },
    stop: async () => {
      client.disconnect();
      await engine.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
