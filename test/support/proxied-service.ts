import type { PackageEntry } from '../../src/snapshot/package-document.js';
import { EngineProxy } from './engine-proxy.js';
import { engines, ENGINES_TIMEOUT_MS } from './engines.js';
import { useService, type SuiteService } from './service.js';

/** The service and proxy of a suite; available only within its tests and hooks. */
interface ProxiedSuiteService extends SuiteService {
  readonly proxy: EngineProxy;
}

/**
 * Like `useService`, with a proxy between the service and Elasticsearch that closes after the service stops.
 * @param env is read when the service starts.
 */
export function useProxiedService(
  packages: () => PackageEntry[],
  env: Record<string, string> = {},
): ProxiedSuiteService {
  let proxy: EngineProxy;
  before(async function () {
    this.timeout(ENGINES_TIMEOUT_MS);
    proxy = await EngineProxy.start(engines().elasticsearch.url);
  });
  const suite = useService(packages, () => ({ ...env, ELASTICSEARCH_URL: proxy.url }));
  after(() => proxy.close());
  return {
    get service() {
      return suite.service;
    },
    get dataset() {
      return suite.dataset;
    },
    publish: (packages) => suite.publish(packages),
    get proxy() {
      return proxy;
    },
  };
}
