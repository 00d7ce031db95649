import { errors } from '@elastic/elasticsearch';
import { expect } from 'chai';
import {
  ElasticsearchUnavailableError,
  NodeUnavailableError,
} from '../../../src/elasticsearch/elasticsearch-errors.js';
import { retry, waitUntilDone } from '../../../src/publish/retry.js';
import { errorResponse } from '../../support/intercepted-client.js';
import { loggedStep, STEP } from '../../support/step.js';

/** Runs `use` on a clock that advances by half a minute whenever it is read. */
async function onFastClock(use: () => Promise<void>): Promise<void> {
  const { now } = performance;
  let ms = 0;
  performance.now = () => (ms += 30_000);
  await use().finally(() => (performance.now = now));
}

describe('retry', () => {
  /** Retries a request that fails with each of the errors, one after the other. */
  async function send(failures: Error[], options = {}) {
    const { logged, ...step } = loggedStep();
    let attempts = 0;
    const attempt = () => {
      const failure = failures[attempts++];
      return failure === undefined ? Promise.resolve('sent') : Promise.reject(failure);
    };
    const outcome = await retry(attempt, { ...step, ...options }).catch((error: unknown) => error);
    return { outcome, attempts, logged };
  }

  for (const [what, failure, attempts] of [
    ['an overloaded node', errorResponse(429), 2],
    ['a node without a master', errorResponse(503), 2],
    ['a failed connection', new errors.ConnectionError('ECONNREFUSED'), 2],
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

  it('logs only the first failure of a request', async () => {
    const { logged } = await send([errorResponse(429), errorResponse(503)]);
    expect(logged).to.have.length(1);
    expect(logged[0]).to.have.property('msg', 'a rebuild request failed and is retried');
    expect(logged[0]).to.have.nested.property('err.type', 'ResponseError');
  });

  // prettier-ignore
  for (const [what, failure, message] of [
    ['the time, if no node responded', new NodeUnavailableError('address'), 'Elasticsearch did not respond for 1 minutes'],
    ['the time, if the connection failed', new errors.ConnectionError('address'), 'Elasticsearch did not respond for 1 minutes'],
    ['the reason, if there is one', new ElasticsearchUnavailableError('a document was rejected'), 'a document was rejected'],
  ] as const) {
    it(`gives up after a minute and names ${what}`, () => onFastClock(async () => {
      const { outcome, attempts } = await send([failure, failure, failure], { stallMs: 60_000 });
      expect(outcome).to.be.instanceOf(ElasticsearchUnavailableError).with.property('message', message);
      if (message !== failure.message) expect(outcome).to.have.property('cause', failure);
      expect(attempts).to.equal(2);
    }));
  }

  it('ends at once when it is stopped between two attempts', async () => {
    const sent = await send([errorResponse(503)], { signal: AbortSignal.timeout(20), pauseMs: 60_000 });
    expect(sent.outcome).to.have.property('name', 'AbortError');
  });

  it('does not retry what fails after it was stopped', async () => {
    const failure = errorResponse(503);
    expect(await send([failure], { signal: AbortSignal.abort() })).to.include({
      outcome: failure,
      attempts: 1,
    });
  });
});

describe('waitUntilDone', () => {
  /** Polls a step with these states, which ends after them. @returns the times of the polls. */
  async function wait(states: unknown[], options = {}) {
    const polls: number[] = [];
    const look = () => {
      const evidence = states[polls.push(performance.now()) - 1];
      return Promise.resolve({ done: polls.length > states.length, evidence });
    };
    const error = await waitUntilDone('the copy', look, { ...STEP, ...options }).catch(
      (error: unknown) => error,
    );
    return { polls, error };
  }

  it('waits as long as a step makes progress', () =>
    onFastClock(async () => {
      expect((await wait([[1], [2], [3]], { stallMs: 90_000 })).polls).to.have.length(4);
    }));

  it('fails if a step makes no progress for the given time', () =>
    onFastClock(async () => {
      const { error, polls } = await wait([[1], [1], [1], [1]], { stallMs: 90_000 });
      expect(error).to.have.property('message', 'the copy made no progress for 1.5 minutes');
      expect(polls).to.have.length(2);
    }));

  it('polls a short step often, but a long one less and less often', async () => {
    const [first = 0, second = 0, third = 0, fourth = 0] = (await wait([1, 2, 3])).polls;
    expect(fourth - third).to.be.within((second - first) * 1.2, 1500);
  });

  it('ends at once when it is stopped between two polls', async () => {
    const { error, polls } = await wait([1], { signal: AbortSignal.timeout(10) });
    expect(error).to.have.property('name', 'AbortError');
    expect(polls).to.have.length(1);
  });
});
