import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pick } from '../../fixtures/random.js';
import { run } from '../../../dev/run.js';
import type { Stack } from '../stack.js';
import { fault, type Fault } from './fault.js';
import { rollingRestart } from './process-faults.js';

/** How long a proxy responds in place of a node, in milliseconds. */
const IMPOSTOR_MS = 10_000;

/** What a proxy sends if its engine is gone. */
const PAGE = 'HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>';

/** Rebuilds with another address in place of that of one node. @param env of the replicas. */
async function withAddress(stack: Stack, address: string, env: Record<string, string> = {}): Promise<void> {
  const [, ...others] = stack.engines.elasticsearchLinks.map(({ url }) => url);
  try {
    await rollingRestart(stack, { ELASTICSEARCH_URL: [address, ...others].join(','), ...env });
    await stack.rebuild();
  } finally {
    await rollingRestart(stack);
  }
}

/** Runs `use` with the address of a server whose certificate is trusted and has expired. */
async function withExpiredCertificate(folder: string, use: (address: string, ca: string) => Promise<void>) {
  const [key, request, certificate] = ['key', 'request', 'certificate'].map((name) =>
    join(folder, `${name}.pem`),
  ) as [string, string, string];
  const subject = ['-subj', '/CN=node', '-addext', 'subjectAltName=IP:127.0.0.1'];
  await run('openssl', ['req', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', request, ...subject]);
  const validity = ['-days', '-1', '-copy_extensions', 'copy'];
  await run('openssl', ['x509', '-req', '-in', request, '-signkey', key, '-out', certificate, ...validity]);
  const server = createServer({ key: await readFile(key), cert: await readFile(certificate) });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  await use(`https://127.0.0.1:${port}`, certificate).finally(() => server.close());
}

const BROKEN = 'one has no address, or an expired certificate';

export const addressFaults: Fault[] = [
  {
    ...fault('a node whose name does not resolve', [BROKEN], (stack) =>
      withAddress(stack, 'http://no-such-host.invalid:9200'),
    ),
    endsReplica: true,
  },
  {
    ...fault('a node with an expired certificate', [BROKEN], (stack) =>
      withExpiredCertificate(stack.folder, (address, ca) =>
        withAddress(stack, address, { NODE_EXTRA_CA_CERTS: ca }),
      ),
    ),
    endsReplica: true,
  },
  fault('a proxy that responds for a node', ['a proxy responds in place of Elasticsearch'], async (stack) => {
    const link = pick(stack.random, stack.engines.elasticsearchLinks);
    link.impostor = PAGE;
    link.cut();
    await pause(IMPOSTOR_MS);
    link.impostor = undefined;
    link.cut();
  }),
];
