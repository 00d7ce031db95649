import type { IncomingMessage, ServerResponse } from 'node:http';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { SearchOutcome } from '../elasticsearch/search-pool.js';
import { HttpServer } from '../http/server/http-server.js';
import type { Logger } from '../util/log.js';

const PREFIX = 'registry_search_';

/** Histogram buckets in seconds: from a cached response to beyond the timeout of a search. */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** A number, and the values of the metric's labels in their order. */
export type Sample = [value: number, ...labels: string[]];

/** One value, values by a single label, or samples; undefined if there is no value. */
export type Reading = number | undefined | Readonly<Record<string, number>> | Sample[];

/** A metric whose values are kept elsewhere and read on every scrape. */
export interface Collector {
  type: 'counter' | 'gauge';
  name: string;
  help: string;
  labels: readonly string[];
  read: () => Reading | Promise<Reading>;
}

export function counter(name: string, help: string, read: Collector['read'], ...labels: string[]): Collector {
  return { type: 'counter', name, help, labels, read };
}

export function gauge(name: string, help: string, read: Collector['read'], ...labels: string[]): Collector {
  return { type: 'gauge', name, help, labels, read };
}

/** Durations are observed as they occur. All other values are read on every scrape. */
export class Metrics {
  readonly registry = new Registry();
  readonly #requests = this.#durations(
    'http_request_duration_seconds',
    'Duration of requests, until the response is handed to the connection',
    ['route', 'status'],
  );
  readonly #searches = this.#durations(
    'elasticsearch_request_duration_seconds',
    'Duration of each search attempt on an Elasticsearch node',
    ['node', 'outcome'],
  );

  /** @param slug value of the label `registry`, which separates the metrics of several registries. */
  constructor(slug: string) {
    this.registry.setDefaultLabels({ registry: slug });
    collectDefaultMetrics({ register: this.registry });
  }

  readonly observeRequest = (route: string, status: number, seconds: number): void => {
    this.#requests.observe({ route, status }, seconds);
  };

  readonly observeSearch = (node: string, outcome: SearchOutcome, seconds: number): void => {
    this.#searches.observe({ node, outcome }, seconds);
  };

  /** Adds these metrics. A metric without samples is shown without a value. */
  register(collectors: readonly Collector[]): void {
    for (const { type, name, help, labels, read } of collectors) {
      const Metric = type === 'counter' ? Counter : Gauge;
      new Metric({
        name: PREFIX + name,
        help,
        labelNames: labels,
        registers: [this.registry],
        async collect() {
          const samples = samplesOf(await read());
          this.reset();
          // Without labels, `reset` sets the value to zero instead of removing it.
          if (labels.length === 0) this.remove();
          for (const [value, ...values] of samples) {
            this.inc(Object.fromEntries(labels.map((label, i) => [label, values[i]])), value);
          }
        },
      });
    }
  }

  #durations<Label extends string>(name: string, help: string, labelNames: Label[]): Histogram<Label> {
    const registers = [this.registry];
    return new Histogram({ name: PREFIX + name, help, labelNames, buckets: BUCKETS, registers });
  }
}

function samplesOf(reading: Reading): Sample[] {
  if (reading === undefined) return [];
  if (typeof reading === 'number') return [[reading]];
  return Array.isArray(reading) ? reading : Object.entries(reading).map(([label, n]) => [n, label]);
}

/** Maximum connections to the metrics port: enough for a few Prometheus servers and people. */
const MAX_CONNECTIONS = 32;

/** Serves `/metrics` on a separate port, for operators, without rate limits. */
export function createMetricsServer(metrics: Metrics, log: Logger): HttpServer {
  return new HttpServer((request, response) => {
    respond(metrics, request, response).catch((error: unknown) => {
      log.error({ err: error }, 'the metrics could not be read');
      response.destroy();
    });
  }, MAX_CONNECTIONS);
}

async function respond(metrics: Metrics, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method !== 'GET' || request.url !== '/metrics') {
    response.writeHead(404, { 'Content-Type': 'text/plain' }).end('not found: only GET /metrics exists\n');
    return;
  }
  const body = await metrics.registry.metrics();
  response.writeHead(200, { 'Content-Type': metrics.registry.contentType }).end(body);
}
