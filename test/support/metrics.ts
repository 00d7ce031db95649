import { expect } from 'chai';

/** Fetches and parses the metrics of a service. */
export async function scrape(metricsUrl: string | undefined): Promise<Scraped> {
  const response = await fetch(`${metricsUrl}/metrics`);
  expect(response.status).to.equal(200);
  expect(response.headers.get('Content-Type')).to.match(/^text\/plain; version=0\.0\.4/);
  return new Scraped(await response.text());
}

/** Parses the part of the Prometheus text format that the service uses. */
class Scraped {
  readonly #samples: { name: string; labels: Record<string, string>; value: number }[];

  constructor(text: string) {
    const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    this.#samples = lines.map((line) => {
      const [, name = '', labels = '', value = ''] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      expect(name, line).not.to.equal('');
      const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, text]) => [
        label,
        text,
      ]);
      return { name, labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) };
    });
  }

  /** The sum of the service's samples with these labels; undefined if there are none. */
  sum(name: string, labels: Record<string, string> = {}): number | undefined {
    const found = this.all(name, labels).map(({ value }) => value);
    return found.length === 0 ? undefined : found.reduce((a, b) => a + b);
  }

  all(name: string, labels: Record<string, string> = {}) {
    return this.#samples.filter(
      (sample) =>
        sample.name === `registry_search_${name}` &&
        Object.entries(labels).every(([label, text]) => sample.labels[label] === text),
    );
  }
}
