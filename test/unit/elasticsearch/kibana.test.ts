import { expect } from 'chai';
import { Kibana } from '../../../src/cli/kibana.js';
import { freePort } from '../../../dev/free-port.js';
import { level, NOT_READY, withKibana } from '../../support/kibana-server.js';

const POLL_MS = 1;

describe('Kibana', () => {
  describe('before an import', () => {
    /** Waits for a server with these statuses. @returns the reported reasons, and that of the failure, if any. */
    async function waitFor(url: string, timeoutMs = 600): Promise<string[]> {
      const reasons: string[] = [];
      const waiting = new Kibana({ url, apiKey: undefined }).ready(
        (reason) => reasons.push(reason),
        timeoutMs,
        POLL_MS,
      );
      await waiting.catch((error: unknown) => reasons.push((error as Error).message));
      return reasons.map((line) => line.replace(url, 'URL'));
    }

    it('is waited for until it is available, and each new reason is reported', async () => {
      const unavailable = level(503, 'unavailable');
      const statuses = [
        NOT_READY,
        unavailable,
        level(200, 'unavailable'),
        NOT_READY,
        level(200, 'available'),
      ];
      expect(await withKibana(statuses, undefined, (url) => waitFor(url, 10_000))).to.deep.equal([
        'Kibana at URL reports no status yet (503)',
        'Kibana at URL is unavailable',
        'Kibana at URL reports no status yet (503)',
      ]);
    });

    it('is usable while it is degraded', async () => {
      expect(await withKibana([level(200, 'degraded')], undefined, (url) => waitFor(url))).to.deep.equal([]);
    });

    it('may not listen yet, and is given up on after the timeout', async () => {
      const [reason, failure] = await waitFor(`http://127.0.0.1:${await freePort()}`);
      expect(reason).to.match(/^Kibana does not respond at URL: .*ECONNREFUSED/);
      expect(failure).to.equal(`gave up after 1 seconds: ${reason}`);
    });

    for (const status of [401, 403]) {
      it(`is given up on at once if it rejects the key: ${status}`, async () => {
        const reasons = await withKibana([{ status, body: '{}' }], undefined, (url) => waitFor(url, 10_000));
        expect(reasons).to.deep.equal([
          `Kibana responded with ${status}: KIBANA_API_KEY is missing, wrong or lacks rights`,
        ]);
      });
    }
  });

  describe('during an import', () => {
    const references = [{ type: 'index-pattern', id: 'a' }];
    const errors = [
      { type: 'lens', id: 'a-total', error: { type: 'missing_references', references } },
      { type: 'dashboard', id: 'a-dashboard', error: { type: 'unknown', message: 'too new' } },
    ];
    const rejected = JSON.stringify({ success: false, successCount: 6, errors });
    const failures: [what: string, status: number, body: string, reason: string][] = [
      [
        'with objects that it rejects, each with the reason',
        200,
        rejected,
        'Kibana rejected lens a-total (missing_references: index-pattern a); dashboard a-dashboard (unknown: too new)',
      ],
      ['without a reason', 200, '{"success":false,"successCount":0}', 'Kibana rejected the import'],
      ['if it rejects the request', 403, 'no rights', 'Kibana responded to the import with 403: no rights'],
      ['if something else responds', 200, '<html>', 'Kibana responded to the import with 200: <html>'],
    ];
    for (const [what, status, body, reason] of failures) {
      it(`causes an error ${what}`, async () => {
        const failure = await withKibana([], { status, body }, (url) =>
          new Kibana({ url, apiKey: undefined }).import('{}').catch((error: unknown) => error),
        );
        expect(failure).to.be.instanceOf(Error).with.property('message', reason);
      });
    }

    it('gets the objects and the key, also at an address with slashes at its end', async () => {
      await withKibana([], undefined, async (url, imports) => {
        expect(await new Kibana({ url: `${url}//`, apiKey: 'key' }).import('{"a":1}\n{"b":2}\n')).to.equal(9);
        expect(imports.map(({ objects }) => objects)).to.deep.equal([[{ a: 1 }, { b: 2 }]]);
        expect(imports[0]?.headers.authorization).to.equal('ApiKey key');
      });
    });
  });
});
