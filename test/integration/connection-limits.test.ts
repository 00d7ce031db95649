import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { UNCACHED } from '../support/background-reader.js';
import { packagesNamed } from '../support/datasets.js';
import { useProxiedService } from '../support/proxied-service.js';
import { getRequest, useConnections } from '../support/raw-connection.js';
import { waitFor } from '../support/wait-for.js';

const MAX_CONNECTIONS = 30;

// How fast it serves new clients: test/serial/connection-limits.test.ts.
describe('A service at its connection limit', function () {
  this.timeout(60_000);
  const suite = useProxiedService(() => packagesNamed(['alpha', 'beta']), {
    ...UNCACHED,
    MAX_CONNECTIONS: String(MAX_CONNECTIONS),
    METRICS_PORT: '0',
  });
  const connections = useConnections(() => suite.service.url);

  it('serves a client that sends a request, however many others connect at the same time', async () => {
    const others = connections.openMany(10 * MAX_CONNECTIONS, '', false);
    const asking = await connections.open(getRequest('/search?q=alpha'));
    await others;
    await waitFor(() => asking.responses.length === 1, 'a response');
    expect(asking.error).to.equal(undefined);
  });

  it('serves new clients, and those that it has closed, while others send nothing or pipeline endlessly', async () => {
    let user = await connections.open();
    for (let i = 1; i <= 6; i++) {
      const bytes = i % 2 === 0 ? '' : getRequest('/ping').repeat(1000);
      const others = await connections.openMany(MAX_CONNECTIONS, bytes, false);
      await pause(100);
      for (const client of [user, await connections.open()]) {
        const before = client.responses.length;
        client.send(getRequest('/ping'));
        // It may have been idle the longest: then it is closed, or reset.
        await client.received().catch(() => undefined);
        if (client.responses.length === before) user = await connections.open(getRequest('/ping'));
      }
      await waitFor(() => user.responses.length > 0, 'a response');
      expect(user.error).to.equal(undefined);
      for (const other of others) other.destroy();
    }
  });
});
