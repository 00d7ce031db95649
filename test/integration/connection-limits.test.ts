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

  it('keeps active clients connected while others connect and send nothing or pipeline endlessly', async () => {
    const user = await connections.open();
    for (let i = 1; i <= 6; i++) {
      user.send(getRequest('/ping'));
      await waitFor(() => user.responses.length === i, 'a response');
      const bytes = i % 2 === 0 ? '' : getRequest('/ping').repeat(1000);
      const others = await connections.openMany(MAX_CONNECTIONS, bytes, false);
      await pause(100);
      for (const other of others) other.destroy();
    }
    expect(user.error).to.equal(undefined);
  });
});
