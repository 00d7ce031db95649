import { expect } from 'chai';
import { getRequest, useConnections } from '../support/raw-connection.js';
import { useSharedService } from '../support/service.js';

describe('An idle connection', () => {
  const suite = useSharedService(() => ({ KEEP_ALIVE_SECONDS: '2' }));
  const { open } = useConnections(() => suite.service.url);

  it('is closed after KEEP_ALIVE_SECONDS, which the response announces', async () => {
    const connection = await open(getRequest('/ping'));
    await connection.received();
    const began = Date.now();
    expect(connection.responses[0]?.headers.get('Keep-Alive')).to.equal('timeout=2');
    await connection.closed;
    expect(Date.now() - began).to.be.within(1800, 4000);
  });
});
