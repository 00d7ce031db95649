import autocannon from 'autocannon';
import { expect } from 'chai';
import { packagesNamed } from './datasets.js';
import { startService, useService, type Service } from './service.js';

/** Rate limit of both replicas: the window outlasts a flood. */
export const FLOOD_POINTS = 400;
/** Requests in one flood. */
export const FLOOD_REQUESTS = 3000;

const CONNECTIONS = 16;

/**
 * Starts two replicas of one registry on one Redis, behind a trusted proxy, for the calling suite, with a limit of
 * `FLOOD_POINTS`.
 * @param env is read when the replicas start.
 * @returns the replicas, available only within tests.
 */
export function useReplicas(env = (): Record<string, string> => ({})): () => [Service, Service] {
  const limits = { RATE_LIMIT_POINTS: String(FLOOD_POINTS), RATE_LIMIT_WINDOW_SECONDS: '600' };
  const limited = () => ({ ...limits, TRUSTED_PROXIES: '127.0.0.1', ...env() });
  const suite = useService(() => packagesNamed(['alpha', 'beta']), limited);
  let second: Service;
  before(async () => {
    second = await startService({ ...limited(), DATASET_URL: suite.dataset.url }, suite.service.slug);
  });
  after(() => second.stop());
  return () => [suite.service, second];
}

/**
 * Sends `FLOOD_REQUESTS` requests, an equal share to each replica; fails if a request gets no response.
 * @param addressOf the `X-Forwarded-For` of request `n`.
 * @returns the number of responses by status.
 */
export async function flood(
  replicas: Service[],
  addressOf: (n: number) => string,
): Promise<Record<string, number>> {
  const statuses: Record<string, number> = {};
  let sent = 0;
  const send = (replica: Service) =>
    autocannon({
      url: `${replica.url}/search?q=alpha`,
      connections: CONNECTIONS / replicas.length,
      amount: FLOOD_REQUESTS / replicas.length,
      requests: [
        { setupRequest: (request) => ({ ...request, headers: { 'X-Forwarded-For': addressOf(sent++) } }) },
      ],
    });
  for (const result of await Promise.all(replicas.map(send))) {
    expect(result.errors + result.timeouts, 'failed requests').to.equal(0);
    const { statusCodeStats } = result as unknown as { statusCodeStats: Record<string, { count: number }> };
    for (const [status, { count }] of Object.entries(statusCodeStats))
      statuses[status] = (statuses[status] ?? 0) + count;
  }
  return statuses;
}
