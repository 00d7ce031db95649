import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { UNCACHED } from '../support/background-reader.js';
import { packagesNamed } from '../support/datasets.js';
import { useService } from '../support/service.js';
import { getRequest, useConnections, type RawConnection } from '../support/raw-connection.js';
import { waitFor } from '../support/wait-for.js';

/** Packages whose long URLs make a page 200 KB. */
const PACKAGES = packagesNamed(Array.from({ length: 100 }, (_, i) => `name-${i}`)).map((entry) => ({
  ...entry,
  url: `${entry.url}?${'x'.repeat(1900)}`,
}));

// Floods of them, through the proxy: test/faults/serial/floods.test.ts.
describe('Pipelined requests', function () {
  this.timeout(60_000);
  const suite = useService(
    () => PACKAGES,
    () => UNCACHED,
  );
  const { open } = useConnections(() => suite.service.url);
  const statusesOf = ({ responses }: RawConnection) => responses.map(({ status }) => status);

  it('are all answered, in order, however many arrive at once', async () => {
    const paths = Array.from({ length: 2000 }, (_, i) => (i % 7 === 0 ? `/nothing/${i}` : '/ping'));
    const client = await open(paths.map((path) => getRequest(path)).join(''));
    await waitFor(() => client.responses.length === paths.length, 'all responses', 30_000);
    expect(statusesOf(client)).to.deep.equal(paths.map((path) => (path === '/ping' ? 200 : 404)));
  });

  it('are all answered to a client that reads slowly', async () => {
    // 12 MB: more than the buffers of sockets.
    const limits = Array.from({ length: 60 }, (_, i) => 100 + i);
    const client = await open(limits.map((limit) => getRequest(`/browse?limit=${limit}`)).join(''), false);
    await pause(500);
    client.read();
    await waitFor(() => client.responses.length === limits.length, 'all responses', 30_000);
    const answered = client.responses.map(({ text }) => (JSON.parse(text) as { limit: number }).limit);
    expect(answered).to.deep.equal(limits);
  });

  it('are answered after requests with a body, which is ignored', async () => {
    const body = `12\r\n\r\n${getRequest('/nothing')}`;
    const withLength = `POST /ping HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const chunked = `PUT /ping HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    const client = await open(getRequest('/ping') + withLength + chunked + getRequest('/ping'));
    await waitFor(() => client.responses.length === 4, 'all responses');
    expect(statusesOf(client)).to.deep.equal([200, 405, 405, 200]);
    for (const { headers } of client.responses.slice(1, 3))
      expect(headers.get('Allow')).to.equal('GET, HEAD');
  });

  it('get their response before their body has arrived', async () => {
    const head = 'PUT /ping HTTP/1.1\r\nHost: a\r\n';
    const starts = [
      `${head}Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n`,
      `${head}Content-Length: 9\r\n\r\n1`,
      getRequest('/ping', 'Content-Length: 5\r\n'),
    ];
    for (const start of starts) {
      const client = await open(start);
      await waitFor(() => client.responses.length === 1, 'the response');
      expect(statusesOf(client)).to.deep.equal([start.startsWith('GET') ? 200 : 405]);
    }
  });
});
