import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import getPort from 'get-port';
import { startLocalService } from '../../../src/dev/local-service.js';
import { ManagedProcess } from '../../../src/dev/managed-process.js';

/** Listens on its port, or fails as Elasticsearch does: with a stack trace below the reason. */
const ENGINE = `
require('node:net').createServer().listen(Number(process.argv[1]), '127.0.0.1', () => console.log('listening'))
  .on('error', () => {
    console.log('java.net.BindException: Address already in use');
    for (let i = 0; i < 20; i++) console.log('  at a.line.of(a.java:' + i + ')');
    process.exit(1);
  });`;

describe('startLocalService', () => {
  let folder: string;
  before(async () => (folder = await mkdtemp(join(tmpdir(), 'package-registry-search-test-'))));
  after(() => rm(folder, { recursive: true }));

  it('picks another port if the first one is taken between the check and the start', async () => {
    const ports: number[] = [];
    const logFile = join(folder, 'log');
    const rival = createServer();
    const engine = await startLocalService({
      description: 'an engine',
      scheme: 'http',
      usualPort: await getPort(),
      launch: async (port) => {
        if (ports.length === 0)
          await new Promise<void>((resolve) => rival.listen(port, '127.0.0.1', resolve));
        ports.push(port);
        const program = new ManagedProcess([process.execPath, '-e', ENGINE, String(port)], {
          cwd: folder,
          env: {},
          runAs: undefined,
          logFile,
        });
        const listens = () => Promise.resolve(readFileSync(logFile, 'utf8').includes('listening'));
        await program.waitUntil(listens, 'The engine', 15_000, new AbortController().signal);
        return program;
      },
    });
    try {
      expect(ports).to.have.lengthOf(2);
      expect(ports[1]).not.to.equal(ports[0]);
      expect(engine.url).to.equal(`http://127.0.0.1:${ports[1]}`);
    } finally {
      await engine.stop();
      rival.close();
    }
  });
});
