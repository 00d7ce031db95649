import type { Logger } from '../log.js';
import type { Generation } from '../snapshot/generation.js';
import type { NameSample } from './name-sample.js';

/** Pause after a sample could not be read, in milliseconds. */
export const SAMPLE_RETRY_MS = 10_000;

/** Generations that are served: the current and the previous one. */
const SERVED_GENERATIONS = 2;

/** The sample of one generation. */
interface SampleState {
  /** Undefined while it is being read. */
  sample?: NameSample;
  /** When it may be read again after a failure, as `performance.now()`. */
  retryAt?: number;
}

/**
 * Predicts whether the names that start with a query fill the response, so that the second tier is not
 * needed. The first search of a generation starts reading a sample of its names; until it has been read,
 * both tiers are searched. Without it, Elasticsearch takes 26 to 30 % more processor time for the first 2 to 7 characters
 * of names (300,000 names).
 */
export class TierPredictor {
  /** By index, oldest first. */
  readonly #states = new Map<string, SampleState>();

  constructor(
    private readonly read: (generation: Generation) => Promise<NameSample>,
    private readonly log: Logger,
  ) {}

  /** Whether more than `limit` names are likely to start with `q`. */
  firstTierSuffices(generation: Generation, q: string, limit: number): boolean {
    return this.#sampleOf(generation)?.fills(q, limit) ?? false;
  }

  #sampleOf(generation: Generation): NameSample | undefined {
    const { index } = generation;
    const known = this.#states.get(index);
    if (known !== undefined && (known.retryAt ?? Infinity) > performance.now()) return known.sample;
    const state: SampleState = {};
    this.#states.set(index, state);
    const [oldest] = this.#states.keys();
    if (this.#states.size > SERVED_GENERATIONS) this.#states.delete(oldest as string);
    void this.#readInto(state, generation);
    return undefined;
  }

  async #readInto(state: SampleState, generation: Generation): Promise<void> {
    try {
      state.sample = await this.read(generation);
    } catch (error) {
      state.retryAt = performance.now() + SAMPLE_RETRY_MS;
      this.log.warn({ err: error, index: generation.index }, 'the sample of names could not be read');
    }
  }
}
