import { startService, type Service, type SuiteService } from './service.js';

/**
 * Starts further replicas of the registry of the calling suite, and stops them after each test.
 * @returns a function that starts one with these variables; for tests.
 */
export function useReplicaStarter(suite: SuiteService) {
  const started: Service[] = [];
  afterEach(async () => {
    for (const replica of started.splice(0)) await replica.stop();
  });
  return async (env: Record<string, string> = {}): Promise<Service> => {
    const replica = await startService({ DATASET_URL: suite.dataset.url, ...env }, suite.service.slug);
    started.push(replica);
    return replica;
  };
}
