import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { expect } from 'chai';
import getPort from 'get-port';
import { startLocalService } from '../../../dev/local-service.js';
import { startProgram } from '../../support/program.js';
import { inRunFolder } from '../../support/run-folder.js';

/** Listens on its port, or fails as Elasticsearch does: with a stack trace below the reason. */
const ENGINE = `
require('node:net').createServer().listen(Number(process.argv[1]), '127.0.0.1', () => console.log('listening'))
  .on('error', () => {
    console.log('java.net.BindException: Address already in use');
    for (let i = 0; i < 20; i++) console.log('  at a.line.of(a.java:' + i + ')');
    process.exit(1);
  });`;

describe('startLocalService', () => {
  const start = (port: number) =>
    startProgram([process.execPath, '-e', ENGINE, String(port)], {
      name: 'The engine',
      cwd: inRunFolder(),
      logFile: inRunFolder('engine'),
      timeoutMs: 15_000,
      isReady: () => Promise.resolve(readFileSync(inRunFolder('engine'), 'utf8').includes('listening')),
    });

  it('picks another port if the first one is taken between the check and the start', async () => {
    const ports: number[] = [];
    const rival = createServer();
    const engine = await startLocalService({
      description: 'an engine',
      scheme: 'http',
      usualPort: await getPort(),
      launch: async (port) => {
        if (ports.push(port) === 1)
          await new Promise<void>((resolve) => rival.listen(port, '127.0.0.1', resolve));
        return start(port);
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
