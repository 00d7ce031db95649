import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { GenericContainer } from 'testcontainers';
import { freePort } from '../../src/dev/free-port.js';
import { ManagedProcess } from '../../src/dev/managed-process.js';
import { run } from '../../src/dev/run.js';

const CONFIG = new URL('../../deploy/haproxy.cfg', import.meta.url);
const IMAGE = 'haproxy:3.0-alpine';
const START_TIMEOUT_MS = 20_000;

export interface HaProxy {
  url: string;
  stop(): Promise<void>;
}

/**
 * Starts HAProxy with deploy/haproxy.cfg in front of replicas at fixed ports of 127.0.0.1: the one on the PATH,
 * otherwise a container.
 * @param folder receives its configuration and log.
 */
export async function startHaProxy(folder: string, ports: readonly number[]): Promise<HaProxy> {
  const port = await freePort();
  const config = join(folder, 'haproxy.cfg');
  await writeFile(config, configFor(await readFile(CONFIG, 'utf8'), port, ports));
  const url = `http://127.0.0.1:${port}`;
  const isInstalled = await run('haproxy', ['-v']).then(
    () => true,
    () => false,
  );
  if (!isInstalled) {
    const container = await new GenericContainer(IMAGE)
      .withNetworkMode('host')
      .withCopyFilesToContainer([{ source: config, target: '/usr/local/etc/haproxy/haproxy.cfg' }])
      .start();
    return {
      url,
      stop: async () => {
        await container.stop();
      },
    };
  }
  const program = new ManagedProcess(['haproxy', '-db', '-f', config], {
    cwd: folder,
    env: { PATH: process.env['PATH'] },
    runAs: undefined,
    logFile: join(folder, 'haproxy.log'),
  });
  const responds = () =>
    fetch(`${url}/ping`).then(
      () => true,
      () => false,
    );
  await program.waitUntil(responds, 'HAProxy', START_TIMEOUT_MS, new AbortController().signal);
  return { url, stop: () => program.stop() };
}

/** Replaces what depends on Docker: the port, and the replicas that are found by Docker's DNS. */
function configFor(text: string, port: number, ports: readonly number[]): string {
  const servers = ports.map(
    (one, i) => `    server replica-${i + 1} 127.0.0.1:${one} check inter 1s fall 2 rise 1`,
  );
  const replacements: [RegExp, string][] = [
    [/^resolvers docker\n(?: .*\n)+/m, ''],
    [/bind :8080/, `bind 127.0.0.1:${port}`],
    [/^ +server-template .*$/m, servers.join('\n')],
  ];
  return replacements.reduce((config, [part, replacement]) => {
    if (!part.test(config)) throw new Error(`deploy/haproxy.cfg has no ${String(part)}`);
    return config.replace(part, replacement);
  }, text);
}
