import { datasetServer } from '../support/dataset-server.js';
import type { Variant } from './snapshots.js';

/** The server of the dataset, which has another state at every rebuild. */
export class Origin {
  /** The state of the dataset that it serves. */
  variant: Variant;
  url = '';
  close: () => Promise<void> = () => Promise.resolve();

  private constructor(private readonly variants: readonly Variant[]) {
    this.variant = variants[0] as Variant;
  }

  static async start(variants: readonly Variant[]): Promise<Origin> {
    const origin = new Origin(variants);
    const server = await datasetServer((_request, response) => response.end(origin.variant.csv));
    return Object.assign(origin, server);
  }

  /** Serves the next state of the dataset. */
  next(): void {
    const { variants, variant } = this;
    this.variant = variants[(variants.indexOf(variant) + 1) % variants.length] as Variant;
  }
}
