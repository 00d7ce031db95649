import { Client } from '@elastic/elasticsearch';
import { changesBetween, type ChangeResult } from '../fixtures/changes-oracle.js';
import { integer, pick } from '../fixtures/random.js';
import { Oracle, type RankedEntry } from '../fixtures/search-oracle.js';
import { SimilarityOracle, type SimilarEntry } from '../fixtures/similarity-oracle.js';
import { snapshotIdOf } from '../../src/snapshot/index-names.js';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
import { bundledPackages, toCsv } from '../support/datasets.js';
import { waitFor } from '../support/wait-for.js';

const PACKAGES = 8000;
const VARIANTS = 4;
/** Packages by which a variant differs from the first one. */
const CHANGED = 120;

/** How long a response waits for what its snapshot was built from, and between two looks, in milliseconds. */
const UNKNOWN_MS = 120_000;
const LOOK_MS = 500;

/** One state of the dataset, and what the service must respond from it, as plain loops over all packages. */
export class Variant {
  readonly csv: string;
  readonly byName: ReadonlyMap<string, PackageEntry>;
  readonly byNumber: readonly PackageEntry[];
  readonly #search: Oracle;
  readonly #similar: SimilarityOracle;

  constructor(packages: readonly PackageEntry[]) {
    this.byNumber = [...packages].sort((a, b) => a.no - b.no);
    this.byName = new Map(packages.map((entry) => [entry.name, entry]));
    this.csv = toCsv(this.byNumber);
    // Not on demand: that would hold up all readers.
    this.#search = new Oracle(this.byNumber);
    this.#similar = new SimilarityOracle(this.byNumber);
  }

  search(q: string): RankedEntry[] {
    return this.#search.search(q);
  }

  similar(name: string): SimilarEntry[] {
    return this.#similar.similar(name);
  }
}

/** States of a dataset that changes a little every day, each with another number of packages. */
export function makeVariants(random: () => number): Variant[] {
  const first = bundledPackages().slice(0, PACKAGES);
  return Array.from({ length: VARIANTS }, (_, i) => {
    const packages = new Map(first.map((entry) => [entry.name, entry]));
    for (let change = 0; change < CHANGED; change++) {
      const entry = pick(random, first);
      const kind = integer(random, 0, 2);
      if (kind === 0) packages.delete(entry.name);
      else if (kind === 1) packages.set(entry.name, { ...entry, version: `${i}.${change}` });
      else {
        const name = `${entry.name}-${i}-${change}`;
        packages.set(name, { ...entry, no: PACKAGES + 1 + i * CHANGED + change, name });
      }
    }
    return new Variant([...packages.values()]);
  });
}

/** Knows which variant each snapshot was built from, according to Elasticsearch. */
export class Snapshots {
  readonly #client: Client;
  readonly #byTotal: ReadonlyMap<number, Variant>;
  readonly #known = new Map<string, Variant>();
  readonly #changes = new Map<string, ChangeResult[]>();
  #looking: Promise<void> | undefined;

  /** @param nodes addresses of Elasticsearch, not through a link. */
  constructor(
    nodes: readonly string[],
    readonly alias: string,
    readonly variants: readonly Variant[],
  ) {
    this.#client = new Client({ nodes: [...nodes], requestTimeout: 5000, maxRetries: 2 });
    this.#byTotal = new Map(variants.map((variant) => [variant.byNumber.length, variant]));
    if (this.#byTotal.size < variants.length) throw new Error('two variants have as many packages');
  }

  get(snapshot: string): Variant | undefined {
    return this.#known.get(snapshot);
  }

  /** What a snapshot was built from, as soon as Elasticsearch tells. @throws {Error} if that takes too long. */
  async variantOf(snapshot: string): Promise<Variant> {
    const isKnown = async () => {
      // Waiting calls share one read, whose errors are left to the next one.
      if (!this.#known.has(snapshot))
        await (this.#looking ??= this.#look()
          .catch(() => undefined)
          .finally(() => (this.#looking = undefined)));
      return this.#known.has(snapshot);
    };
    await waitFor(isKnown, `the dataset of the snapshot ${snapshot}`, UNKNOWN_MS, LOOK_MS);
    return this.#known.get(snapshot) as Variant;
  }

  /** The net changes between two known snapshots, of which one was built from the other. */
  changes(from: string, to: string): ChangeResult[] {
    const key = `${from} ${to}`;
    const [old, current] = [this.#known.get(from), this.#known.get(to)];
    if (old === undefined || current === undefined) throw new Error(`unknown snapshots: ${key}`);
    const found = this.#changes.get(key) ?? changesBetween([old.byNumber, current.byNumber]);
    this.#changes.set(key, found);
    return found;
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  async #look(): Promise<void> {
    const found = await this.#client.indices.get({
      index: `${this.alias}-2*`,
      filter_path: '*.mappings._meta',
    });
    for (const [index, { mappings }] of Object.entries(found)) {
      const variant = this.#byTotal.get(Number(mappings?._meta?.['total']));
      if (variant !== undefined) this.#known.set(snapshotIdOf(index), variant);
    }
  }
}
