import { expect } from 'chai';
import { bundledPackages, packagesNamed, toCsv } from '../support/datasets.js';
import { expectProblem } from '../support/expect-problem.js';
import { namesAt } from '../support/expect-search.js';
import { REBUILD, useService, useSharedService } from '../support/service.js';

describe('GET /rebuild', function () {
  this.timeout(120_000);
  const old = bundledPackages().slice(0, 500);
  const suite = useService(() => old);

  it('rejects a wrong, an empty and a missing secret with the same body', async () => {
    const answers = [
      await suite.service.get('/rebuild?secret=wrong'),
      await suite.service.get('/rebuild?secret='),
      await suite.service.get('/rebuild'),
    ];
    for (const answer of answers) expectProblem(answer, 403, 'forbidden');
    expect(new Set(answers.map(({ text }) => text)).size).to.equal(1);
  });

  it('leaves no record of its merge in Elasticsearch', async () => {
    const { elasticsearch } = suite.service;
    const records = async () =>
      (await elasticsearch.indices.exists({ index: '.tasks' }))
        ? (await elasticsearch.count({ index: '.tasks' })).count
        : 0;
    const before = await records();
    await suite.publish(old);
    expect(await records()).to.equal(before);
  });

  describe('with a changed CSV', () => {
    const added = packagesNamed(['brand-new-package']).map((entry) => ({ ...entry, no: 99_999 }));
    const changed = [...old.slice(10), ...added];

    it('answers searches from one of the snapshots meanwhile', async () => {
      await suite.dataset.write(toCsv(changed));
      expect((await suite.service.get(REBUILD)).body).to.include({ phase: 'downloading' });
      const seen = new Set<string>();
      let asked = 0;
      for (; suite.service.isRebuilding(); asked++) {
        expect(await namesAt(suite.service, '/search?q=-dev&limit=20')).to.have.length(20);
        const [first] = await namesAt(suite.service, '/browse?limit=3');
        seen.add(first ?? '');
        const { total_packages } = (await suite.service.get('/health')).body;
        expect(total_packages).to.be.oneOf([old.length, changed.length]);
      }
      expect(asked).to.be.greaterThan(10);
      expect([old[0]?.name, old[10]?.name]).to.include.members([...seen]);
    });

    it('serves it afterwards', async () => {
      expect((await suite.service.get('/health')).body.total_packages).to.equal(changed.length);
      const { body } = await suite.service.get('/search?q=brand-new');
      expect(body.results).to.deep.equal([{ ...added[0], rank: 1 }]);
      expect((await suite.service.get('/browse?limit=1')).body.results).to.deep.equal([old[10]]);
    });
  });

  it('reports the progress of a running rebuild', async () => {
    const { status, body } = await suite.service.get(`${REBUILD}&force=true`);
    expect(status).to.equal(202);
    expect(body).to.include({ status: 'rebuilding', phase: 'downloading' });
    expect(Date.parse(body.started_at)).to.be.closeTo(Date.now(), 60_000);
    const phases = new Set<string>();
    for (;;) {
      const again = await suite.service.get(REBUILD);
      // It has ended, and this is the next one.
      if (again.status === 202) break;
      expectProblem(again, 503, 'rebuilding');
      expect(again.body.started_at).to.equal(body.started_at);
      phases.add(again.body.phase);
    }
    expect(phases.size, [...phases].join()).to.be.greaterThan(1);
    await suite.service.idle();
  });
});

describe('GET /rebuild without a configured secret', () => {
  const suite = useSharedService(() => ({ REBUILD_SECRET: '', BYPASS_SECRET: '' }));

  it('rejects every request for a rebuild', async () => {
    for (const path of ['/rebuild', '/rebuild?secret=', '/rebuild?secret=undefined', '/get-bypass?secret=']) {
      expectProblem(await suite.service.get(path), 403, 'forbidden');
    }
  });
});
