import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { GenericContainer } from 'testcontainers';
import { freePort } from '../../dev/free-port.js';
import { run } from '../../dev/run.js';
import { startProgram, statusOf } from '../support/program.js';

const CONFIG = new URL('../../deploy/haproxy.cfg', import.meta.url);
const IMAGE = 'haproxy:3.0-alpine';
const START_TIMEOUT_MS = 20_000;

export interface HaProxy {
  url: string;
  stop(): Promise<unknown>;
}

/**
 * Starts HAProxy with deploy/haproxy.cfg in front of replicas at fixed ports of 127.0.0.1: the one on the PATH,
 * otherwise a container.
 * @param folder receives its configuration and log.
 */
export async function startHaProxy(folder: string, ports: readonly number[]): Promise<HaProxy> {
  const port = await freePort();
  const source = join(folder, 'haproxy.cfg');
  await writeFile(source, configFor(await readFile(CONFIG, 'utf8'), port, ports));
  const url = `http://127.0.0.1:${port}`;
  const version = await run('haproxy', ['-v']).catch(() => undefined);
  const program =
    version === undefined
      ? await new GenericContainer(IMAGE)
          .withNetworkMode('host')
          .withCopyFilesToContainer([{ source, target: '/usr/local/etc/haproxy/haproxy.cfg' }])
          .start()
      : await startProgram(['haproxy', '-db', '-f', source], {
          name: 'HAProxy',
          cwd: folder,
          logFile: join(folder, 'haproxy.log'),
          timeoutMs: START_TIMEOUT_MS,
          // It responds with 503 while there is no replica.
          isReady: async () => (await statusOf(`${url}/ping`)) !== undefined,
        });
  return { url, stop: () => program.stop() };
}

/** Replaces what depends on Docker: the port, and the replicas that are found by Docker's DNS. */
function configFor(text: string, port: number, ports: readonly number[]): string {
  const servers = (_match: string, options: string) =>
    ports.map((one, i) => `    server replica-${i + 1} 127.0.0.1:${one}${options}`).join('\n');
  const replacements: [RegExp, string | typeof servers][] = [
    [/^resolvers docker\n(?: .*\n)+/m, ''],
    [/bind :8080/, `bind 127.0.0.1:${port}`],
    [/^ +server-template .*?3000"(.*) resolvers .*$/gm, servers],
  ];
  return replacements.reduce((config, [part, replacement]) => {
    const replaced = config.replace(part, replacement as string);
    if (replaced === config) throw new Error(`deploy/haproxy.cfg has no ${String(part)}`);
    return replaced;
  }, text);
}
