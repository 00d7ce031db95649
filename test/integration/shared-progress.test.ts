import { expect } from 'chai';
import { Redis } from 'ioredis';
import { packagesNamed } from '../support/datasets.js';
import { engines } from '../support/engines.js';
import { expectProblem } from '../support/expect-problem.js';
import { REBUILD, useService } from '../support/service.js';

describe('The progress of a replica of another version', function () {
  this.timeout(60_000);
  const suite = useService(() => packagesNamed(['alpha']));
  const written: [what: string, text: string][] = [
    [
      'with a phase that this version does not know',
      '{"phase":"polishing","rows":1,"startedAt":"2026-01-02T03:04:05.678Z"}',
    ],
    ['in a newer format', '{"version":2,"step":"loading"}'],
    ['that is not JSON', 'loading'],
    ['with a negative number', '{"phase":"loading","rows":-5,"startedAt":"2026-01-02T03:04:05.678Z"}'],
    ['with a fraction', '{"phase":"loading","rows":1.5,"startedAt":"2026-01-02T03:04:05.678Z"}'],
    ['with an invalid date', '{"phase":"loading","rows":1,"startedAt":"soon","at":"soon","reason":"a"}'],
    [
      'of many megabytes',
      `{"phase":"loading","rows":1,"startedAt":"2026-01-02T03:04:05.678Z","at":"2026-01-02T03:04:05.678Z","reason":"${'x'.repeat(20_000_000)}"}`,
    ],
  ];

  for (const [what, text] of written) {
    it(`causes no error, and is not reported: one ${what}`, async () => {
      const { slug } = suite.service;
      const redis = new Redis((await engines()).redis.url);
      try {
        await redis.set(`${slug}:rebuild:lock`, 'another', 'PX', 10_000);
        await redis.set(`${slug}:rebuild:progress`, text, 'PX', 10_000);
        await redis.set(`${slug}:rebuild:last-failure`, text, 'PX', 10_000);
        const answer = await suite.service.get(REBUILD);
        expectProblem(answer, 503, 'rebuilding');
        expect(answer.body).to.include({ phase: 'downloading', last_failure: null });
      } finally {
        await redis.del(`${slug}:rebuild:lock`, `${slug}:rebuild:progress`, `${slug}:rebuild:last-failure`);
        redis.disconnect();
      }
    });
  }
});
