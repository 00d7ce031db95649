import { errors } from '@elastic/elasticsearch';
import { expect } from 'chai';
import { flip } from '../../../src/publish/flip.js';
import { errorResponse, interceptedClient } from '../../support/intercepted-client.js';
import { STEP } from '../../support/step.js';

const LOST = new errors.ConnectionError('the response was lost');
const MISSING = errorResponse(404, 'aliases_not_found_exception');
const REJECTED = errorResponse(403);
const SUCCESS = {};

describe('flip', () => {
  /** Serves an index. Elasticsearch answers with these responses, of which the last is repeated. */
  async function flipped(answers: unknown[], signal = STEP.signal) {
    let sent = 0;
    const client = interceptedClient(() => {
      const answer = answers[Math.min(sent++, answers.length - 1)];
      return answer instanceof Error ? Promise.reject(answer) : answer;
    });
    const step = { ...STEP, signal, stallMs: 20, pauseMs: 5 };
    const error = await flip(client, 'alias', { from: 'old', to: 'new' }, step).catch(
      (error: unknown) => error,
    );
    return { error, sent };
  }

  for (const [what, answers, requests] of [
    ['its request succeeds', [SUCCESS], 1],
    ['the index is served although the response was lost', [LOST, SUCCESS], 2],
    ['a further attempt succeeds', [LOST, MISSING, SUCCESS], 3],
    ['the index is served although a further attempt failed', [LOST, LOST, MISSING, SUCCESS], 4],
  ] as [string, unknown[], number][]) {
    it(`succeeds if ${what}`, async () => {
      expect(await flipped(answers)).to.deep.equal({ error: undefined, sent: requests });
    });
  }

  it('fails if another process has changed what is served', async () => {
    const { error } = await flipped([MISSING]);
    expect(error).to.include({
      message: 'another rebuild or a rollback changed what is served meanwhile',
      cause: MISSING,
    });
  });

  it('fails with the reason of Elasticsearch', async () => {
    expect((await flipped([REJECTED, MISSING])).error).to.equal(REJECTED);
  });

  for (const [what, answers, signal, cause] of [
    ['Elasticsearch does not respond', [LOST], STEP.signal, 'Elasticsearch did not respond for 0.02 seconds'],
    ['it is stopped', [REJECTED, MISSING], AbortSignal.abort(), REJECTED.message],
  ] as [string, unknown[], AbortSignal, string][]) {
    it(`says that its outcome is unknown if ${what}`, async () => {
      const { error } = await flipped(answers, signal);
      expect(error).to.include({
        name: 'FlipError',
        message: 'Elasticsearch stopped responding during the flip: it is unknown which snapshot is served',
      });
      expect(error).to.have.nested.property('cause.message', cause);
    });
  }
});
