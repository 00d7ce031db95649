import { createServer } from 'node:net';
import { expect } from 'chai';
import getPort from 'get-port';
import { startLocalService } from '../../../dev/local-service.js';
import { useManagedPrograms } from '../../support/managed-program.js';

/** Listens on its port, or fails as Elasticsearch does: with a stack trace below the reason. */
const ENGINE = `
require('node:net').createServer().listen(Number(process.argv[1]), '127.0.0.1', () => console.log('listening'))
  .on('error', () => {
    console.log('java.net.BindException: Address already in use');
    for (let i = 0; i < 20; i++) console.log('  at a.line.of(a.java:' + i + ')');
    process.exit(1);
  });`;

describe('startLocalService', () => {
  const start = useManagedPrograms();

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
        return (await start(ENGINE, String(port), 'listening')).program;
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
