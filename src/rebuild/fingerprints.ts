import xxhash from 'xxhash-wasm';

const SEEDS = [0, 0x9e3779b1] as const;
const FULL_AT = 0.6;

/**
 * A set of texts that keeps 8 bytes of each: it never forgets one, and takes a new one for an old one about once in
 * 10^7 sets of 4,000,000 texts. So what it calls seen has to be confirmed, and what it calls new is new.
 */
export class Fingerprints {
  #size = 0;
  /** Pairs of hashes in open addressing; (0, 0) is a free place. */
  #pairs: Uint32Array;

  private constructor(
    private readonly h32: (text: string, seed: number) => number,
    places: number,
  ) {
    this.#pairs = new Uint32Array(places * 2);
  }

  static async create(): Promise<Fingerprints> {
    const hashes = await xxhash();
    return new Fingerprints((text, seed) => hashes.h32(text, seed), 2 ** 16);
  }

  /** Adds `text`. @returns false where it seems to be in the set already. */
  add(text: string): boolean {
    const high = this.h32(text, SEEDS[0]);
    const low = this.h32(text, SEEDS[1]) || 1;
    if (!insert(this.#pairs, high, low)) return false;
    this.#size++;
    if (this.#size * 2 > this.#pairs.length * FULL_AT) this.#grow();
    return true;
  }

  #grow(): void {
    const larger = new Uint32Array(this.#pairs.length * 2);
    for (let i = 0; i < this.#pairs.length; i += 2) {
      const low = this.#pairs[i + 1] as number;
      if (low !== 0) insert(larger, this.#pairs[i] as number, low);
    }
    this.#pairs = larger;
  }
}

/** Puts a pair in its place by linear probing. @returns false where it is there already. */
function insert(pairs: Uint32Array, high: number, low: number): boolean {
  const mask = pairs.length / 2 - 1;
  for (let place = high & mask; ; place = (place + 1) & mask) {
    const at = place * 2;
    if (pairs[at + 1] === 0) {
      pairs[at] = high;
      pairs[at + 1] = low;
      return true;
    }
    if (pairs[at] === high && pairs[at + 1] === low) return false;
  }
}
