import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startElasticsearchProcess } from '../../dev/elasticsearch.js';
import type { Service } from '../../dev/service.js';
import { findPaths, makeFolder } from '../../dev/paths.js';
import { enableSecurity, type Administrator } from './node-security.js';

const HEAP = '512m';

export interface NodeOptions {
  settings?: Record<string, unknown>;
  /** Enables security, with this superuser as the only user. */
  administrator?: Administrator;
  /** Niceness until it is ready; 0 afterwards. Only for root. */
  startNiceness?: number;
}

/** Elasticsearch nodes of one suite, separate from the shared one. */
export interface IsolatedNodes {
  /** @throws if Elasticsearch cannot be fetched. It comes from Maven even if other engines are containers. */
  start(name: string, options: NodeOptions): Promise<Service>;
  /** Stops all nodes and deletes their data. */
  stop(): Promise<void>;
}

export async function isolatedNodes(): Promise<IsolatedNodes> {
  const paths = findPaths(process.env);
  const folder = makeFolder(await mkdtemp(join(tmpdir(), 'package-registry-search-test-')), paths.runAs);
  const started: Service[] = [];
  return {
    start: async (name, { administrator, settings, ...options }) => {
      const config = makeFolder(join(folder, name, 'config'), paths.runAs);
      const security = administrator && enableSecurity(administrator, config);
      const engine = await startElasticsearchProcess({
        paths,
        folder: join(folder, name),
        heap: HEAP,
        env: process.env,
        log: (line) => console.log(line),
        signal: new AbortController().signal,
        ...options,
        settings: { ...settings, ...security?.settings },
        ...(security && { headers: security.headers }),
      });
      started.push(engine);
      return engine;
    },
    stop: async () => {
      await Promise.all(started.map((engine) => engine.stop()));
      await rm(folder, { recursive: true, force: true });
    },
  };
}
