import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { SearchOutcome } from '../clients/search-pool.js';

const PREFIX = 'registry_search_';

/** Bounds of the buckets, in seconds: from an answer out of the cache to what is given up. */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** A number, and the values of the metric's labels in their order. */
export type Sample = [value: number, ...labels: string[]];

/** A metric whose values are kept elsewhere and read on every scrape. */
export interface Collector {
  type: 'counter' | 'gauge';
  name: string;
  help: string;
  labels?: readonly string[];
  read: () => Sample[];
}

/**
 * What Prometheus may know. Durations are observed as they occur. Everything else is counted where it happens, as plain
 * numbers, and read on every scrape: a request costs one observation.
 */
export class Metrics {
  readonly #registry = new Registry();
  readonly #requests: Histogram<'route' | 'status'>;
  readonly #searches: Histogram<'node' | 'outcome'>;

  /** @param slug tells the metrics of this registry from those of a sibling: the label `registry`. */
  constructor(slug: string) {
    this.#registry.setDefaultLabels({ registry: slug });
    collectDefaultMetrics({ register: this.#registry });
    this.#requests = this.#durations(
      'http_request_duration_seconds',
      'Requests, until their answer is handed to the connection',
      ['route', 'status'],
    );
    this.#searches = this.#durations(
      'elasticsearch_request_duration_seconds',
      'Searches sent to a node of Elasticsearch, each attempt',
      ['node', 'outcome'],
    );
  }

  readonly observeRequest = (route: string, status: number, seconds: number): void => {
    this.#requests.observe({ route, status }, seconds);
  };

  readonly observeSearch = (node: string, outcome: SearchOutcome, seconds: number): void => {
    this.#searches.observe({ node, outcome }, seconds);
  };

  /** Shows these metrics from now on; one without samples is left out of the text. */
  register(collectors: readonly Collector[]): void {
    for (const collector of collectors) this.#registerOne(collector);
  }

  /** All of it in the text format of Prometheus. */
  async text(): Promise<{ contentType: string; body: string }> {
    return { contentType: this.#registry.contentType, body: await this.#registry.metrics() };
  }

  #registerOne({ type, name, help, labels = [], read }: Collector): void {
    const Metric = type === 'counter' ? Counter : Gauge;
    new Metric({
      name: PREFIX + name,
      help,
      labelNames: labels,
      registers: [this.#registry],
      collect() {
        this.reset();
        // Without labels, reset means zero.
        if (labels.length === 0) this.remove();
        for (const [value, ...values] of read()) {
          this.inc(Object.fromEntries(labels.map((label, i) => [label, values[i]])), value);
        }
      },
    });
  }

  #durations<Label extends string>(name: string, help: string, labelNames: Label[]): Histogram<Label> {
    const registers = [this.#registry];
    return new Histogram({ name: PREFIX + name, help, labelNames, buckets: BUCKETS, registers });
  }
}
