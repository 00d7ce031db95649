import type { RequestListener } from 'node:http';
import { datasetServer } from '../support/dataset-server.js';
import type { Variant } from './snapshots.js';

/** The server of the dataset, which has another state at every rebuild. */
export class Origin {
  /** How it responds; `undefined` serves the current variant. */
  respondWith: RequestListener | undefined;
  /** The state of the dataset that it serves. */
  variant: Variant;
  url = '';
  close: () => Promise<void> = () => Promise.resolve();

  private constructor(private readonly variants: readonly Variant[]) {
    this.variant = variants[0] as Variant;
  }

  static async start(variants: readonly Variant[]): Promise<Origin> {
    const origin = new Origin(variants);
    const server = await datasetServer((request, response) => {
      if (origin.respondWith !== undefined) origin.respondWith(request, response);
      else response.end(origin.variant.csv);
    });
    return Object.assign(origin, server);
  }

  /** Serves the next state of the dataset. */
  next(): void {
    const { variants, variant } = this;
    this.variant = variants[(variants.indexOf(variant) + 1) % variants.length] as Variant;
  }
}
