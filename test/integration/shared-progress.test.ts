import { expect } from 'chai';
import { Redis } from 'ioredis';
import { packagesNamed } from '../support/datasets.js';
import { engines } from '../support/engines.js';
import { expectProblem } from '../support/expect-problem.js';
import { REBUILD, useService } from '../support/service.js';

describe('The progress of a replica of another version', () => {
  const suite = useService(() => packagesNamed(['alpha']));
  let redis: Redis;
  before(() => {
    redis = new Redis(engines().redis.url);
  });
  after(() => redis.disconnect());

  const DATE = '2026-01-02T03:04:05.678Z';
  const report = (part: object) => JSON.stringify({ phase: 'loading', rows: 1, startedAt: DATE, ...part });
  const written: [what: string, text: string][] = [
    ['with a phase that this version does not know', report({ phase: 'polishing' })],
    ['in a newer format', '{"version":2,"step":"loading"}'],
    ['that is not JSON', 'loading'],
    ['with a number that is no count', report({ rows: -5 })],
    ['with an invalid date', report({ startedAt: 'soon', at: 'soon', reason: 'a' })],
    ['of many megabytes', report({ at: DATE, reason: 'x'.repeat(20_000_000) })],
  ];
  for (const [what, text] of written) {
    it(`causes no error and is not reported: one ${what}`, async () => {
      const keyOf = (name: string) => `${suite.service.slug}:rebuild:${name}`;
      await redis.set(keyOf('lock'), 'another', 'PX', 60_000);
      await redis.set(keyOf('progress'), text, 'PX', 60_000);
      await redis.set(keyOf('last-failure'), text, 'PX', 60_000);
      const answer = await suite.service.get(REBUILD);
      expectProblem(answer, 503, 'rebuilding');
      expect(answer.body).to.include({ phase: 'downloading', last_failure: null });
      await redis.del(keyOf('lock'), keyOf('progress'), keyOf('last-failure'));
    });
  }
});
