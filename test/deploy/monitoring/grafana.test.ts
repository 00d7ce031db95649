import { expect } from 'chai';
import { packagesNamed } from '../../support/datasets.js';
import { interpolate, panels } from '../../support/grafana.js';
import { usePrometheus } from '../../support/prometheus.js';
import { useService } from '../../support/service.js';
import { waitFor } from '../../support/wait-for.js';

/** Until Prometheus has scraped every metric twice, in milliseconds. Rates need two samples. */
const TIMEOUT_MS = 60_000;

/** The rate of the last kind of request; empty before the second scrape after it. */
const LAST =
  'rate(registry_search_http_request_duration_seconds_count{registry="$registry", route="none"}[$__range])';

describe('The dashboard of Grafana', function () {
  this.timeout(2 * TIMEOUT_MS);
  const suite = useService(
    () => packagesNamed(['alpha', 'alphabet', 'beta']),
    () => ({ METRICS_PORT: '0' }),
  );
  const prometheus = usePrometheus(() => [suite.service.server.metricsUrl ?? '']);

  const query = (expr: string) => prometheus.query(interpolate(expr, suite.service.slug));

  before(async () => {
    for (const path of ['/search?q=alpha', '/search?q=alpha', '/browse', '/stats', '/nothing']) {
      await suite.service.get(path);
    }
    await waitFor(async () => (await query(LAST)).length > 0, 'two scrapes', TIMEOUT_MS);
  });

  for (const { title, targets = [] } of panels) {
    it(`has data for "${title}"`, async () => {
      expect(targets).not.to.deep.equal([]);
      for (const { refId, expr } of targets) {
        expect(await query(expr), `${refId}: ${expr}`).to.be.an('array').that.is.not.empty;
      }
    });
  }
});
