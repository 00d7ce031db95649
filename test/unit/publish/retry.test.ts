import { errors } from '@elastic/elasticsearch';
import { expect } from 'chai';
import {
  ElasticsearchUnavailableError,
  NodeUnavailableError,
} from '../../../src/elasticsearch/elasticsearch-errors.js';
import { retry } from '../../../src/publish/retry.js';
import { errorResponse } from '../../support/intercepted-client.js';
import { STEP } from '../../support/step.js';

describe('retry', () => {
  /** Retries a request that fails with each of the errors, one after the other. */
  async function send(failures: Error[], options = {}) {
    let attempts = 0;
    const attempt = () => {
      const failure = failures[attempts++];
      return failure === undefined ? Promise.resolve('sent') : Promise.reject(failure);
    };
    const outcome = await retry(attempt, { ...STEP, pauseMs: 1, ...options }).catch(
      (error: unknown) => error,
    );
    return { outcome, attempts };
  }

  for (const [what, failure, attempts] of [
    ['an overloaded node', errorResponse(429), 2],
    ['a node without a master', errorResponse(503), 2],
    ['a timeout', new errors.TimeoutError('50 s'), 2],
    ['an unassigned shard', new ElasticsearchUnavailableError('no shard'), 2],
    ['an invalid request', errorResponse(400), 1],
    ['a mistake in the code', new TypeError('x is not a function'), 1],
  ] as [string, Error, number][]) {
    it(`${attempts > 1 ? 'sends' : 'does not send'} a request again after ${what}`, async () => {
      const sent = await send([failure]);
      expect(sent).to.include({ attempts, outcome: attempts > 1 ? 'sent' : failure });
    });
  }

  it('gives up after the given time without the address of a node', async () => {
    const now = performance.now.bind(performance);
    let ms = 0;
    performance.now = () => (ms += 30_000);
    const failure = new NodeUnavailableError('http://10.0.0.1:9200');
    const sent = send([failure, failure, failure], { stallMs: 60_000 });
    const { outcome, attempts } = await sent.finally(() => (performance.now = now));
    const message = 'Elasticsearch did not respond for 1 minutes';
    expect(outcome)
      .to.be.instanceOf(ElasticsearchUnavailableError)
      .and.to.include({ message, cause: failure });
    expect(attempts).to.equal(2);
  });

  it('ends at once when it is stopped between two attempts', async () => {
    const sent = await send([errorResponse(503)], { signal: AbortSignal.timeout(20), pauseMs: 60_000 });
    expect(sent.outcome).to.have.property('name', 'AbortError');
  });
});
