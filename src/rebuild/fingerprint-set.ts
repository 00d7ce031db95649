import xxhash from 'xxhash-wasm';

const FULL_AT = 0.6;

/**
 * Number of parts, selected by hash. Each part grows separately: doubling one large table would block the
 * event loop for 0.2 s at 4,000,000 texts.
 */
const PARTS = 256;
const FIRST_PLACES = 2 ** 8;

/**
 * A set of 64-bit hashes of texts. `add` detects every repeated text, and takes a new text for a repeated one
 * about once in 2,000,000 sets of 4,000,000 texts: callers must confirm repetitions.
 */
export class FingerprintSet {
  readonly #parts = Array.from({ length: PARTS }, () => new PairSet());

  private constructor(private readonly h64: (text: string) => bigint) {}

  static async create(): Promise<FingerprintSet> {
    const hashes = await xxhash();
    return new FingerprintSet((text) => hashes.h64(text));
  }

  /** Adds `text`. @returns false if it seems to be in the set already. */
  add(text: string): boolean {
    const hash = this.h64(text);
    const high = Number(hash >> 32n);
    const low = Number(hash & 0xffff_ffffn) || 1;
    return (this.#parts[low % PARTS] as PairSet).add(high, low);
  }
}

class PairSet {
  #size = 0;
  /** Open-addressing table with the high and the low half of each hash. A low half of 0 marks a free slot. */
  #pairs = new Uint32Array(FIRST_PLACES * 2);

  /** @returns false if the pair is in the set already. */
  add(high: number, low: number): boolean {
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

/** Inserts a pair by linear probing. @returns false if it is there already. */
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
