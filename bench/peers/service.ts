import { setTimeout as pause } from 'node:timers/promises';
import { parseResponse, msearchRequest, type SearchBody } from '../../src/elasticsearch/msearch.js';
import { searchTierByTier } from '../../src/search/tiered-search.js';
import { writeResponseBody } from '../../src/snapshot/package-document.js';
import { bytesOf, elasticsearchTime } from '../engines.js';
import { estimateOf, type Loaded } from '../load.js';
import { BaselineClient } from '../measure.js';
import { clockOf, CONNECTIONS, overHttp, type Peer } from './peer.js';

/** Elasticsearch measures its processor time once a second at most. */
const CLOCK_AGE_MS = 1100;

export function serviceAsPeer(elasticsearch: string, loaded: Loaded): Peer {
  const { service, index, seconds } = loaded;
  return {
    ...overHttp('this service', service, [clockOf(service), engineClock(elasticsearch)]),
    bytes: () => bytesOf(elasticsearch, index),
    loadSeconds: seconds,
  };
}

/** The requests that the service sends to Elasticsearch, sent by this process. */
export async function elasticsearchAsPeer(elasticsearch: string, index: string): Promise<Peer> {
  const client = new BaselineClient(elasticsearch, CONNECTIONS);
  const isLikelyFull = await estimateOf(elasticsearch, index);
  const run = async (bodies: SearchBody[]) => {
    const { path, body } = msearchRequest(index, bodies);
    return parseResponse(await client.post(path, body), bodies.length, index);
  };
  return {
    name: 'its requests to Elasticsearch alone',
    search: async (q, limit) => {
      const { count, groups } = await searchTierByTier(run, { q, limit }, isLikelyFull(q, limit));
      const before = `{"query":${JSON.stringify(q)},"count":${count},"results":[`;
      return writeResponseBody(before, groups).toString();
    },
    clocks: [engineClock(elasticsearch)],
    stop: () => client.close(),
  };
}

function engineClock(elasticsearch: string): () => Promise<number> {
  return async () => {
    await pause(CLOCK_AGE_MS);
    return elasticsearchTime(elasticsearch);
  };
}
