import { errors } from '@elastic/elasticsearch';
import { expect } from 'chai';
import { flip } from '../../../src/publish/flip.js';
import { errorResponse, interceptedClient } from '../../support/intercepted-client.js';
import { STEP } from '../../support/step.js';

const LOST = new errors.ConnectionError('the response was lost');
const MISSING = errorResponse(404, 'aliases_not_found_exception');
const REFUSED = errorResponse(403, 'security_exception');
const UNKNOWN = 'Elasticsearch stopped responding during the flip: it is unknown which snapshot is served';
const CHANGED = 'another rebuild or a rollback changed what is served meanwhile';

describe('flip', () => {
  // prettier-ignore
  for (const [what, outcome, signal, ...answers] of [
    ['succeeds with its request', 'served', STEP.signal, 'done'],
    ['succeeds if only the response was lost', 'served', STEP.signal, LOST, 'done'],
    ['succeeds if a further attempt does', 'served', STEP.signal, LOST, MISSING, 'done'],
    ['fails if another process changed what is served', CHANGED, STEP.signal, MISSING, MISSING],
    ['fails with the reason of Elasticsearch', REFUSED.message, STEP.signal, REFUSED, MISSING],
    ['does not know what is served if Elasticsearch does not respond', UNKNOWN, STEP.signal, LOST],
    ['does not know what is served if it is stopped', UNKNOWN, AbortSignal.abort(), REFUSED, MISSING],
  ] as [string, string, AbortSignal, ...(Error | string)[]][]) {
    it(what, async () => {
      let sent = 0;
      const client = interceptedClient(() => {
        const answer = answers[sent++] ?? LOST;
        return answer instanceof Error ? Promise.reject(answer) : answer;
      });
      const step = { ...STEP, signal, stallMs: 20, pauseMs: 5 };
      const flipped = flip(client, 'alias', { from: 'old', to: 'new' }, step);
      const error = await flipped.then(() => undefined, (error: unknown) => error as Error);
      expect(error?.message ?? 'served').to.equal(outcome);
      expect(error?.name === 'FlipError').to.equal(outcome === UNKNOWN);
      if (outcome !== UNKNOWN) expect(sent).to.equal(answers.length);
      if (outcome !== REFUSED.message && error !== undefined) expect(error.cause).to.be.instanceOf(Error);
    });
  }
});
