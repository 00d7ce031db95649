/** Number of bytes by which a list grows, in place. */
const GROWTH_BYTES = 2 ** 20;

/** Maximum size of a list, in bytes: 537 million values. Only address space is reserved for this size, not memory. */
const MAX_BYTES = 2 ** 32;

/** Maximum number of repeated values that are collected, in addition to `DATASET_MAX_BAD_ROWS`. */
export const EXTRA_REPEATED = 100_000;

/** Numbers (exact up to 2^53), each in 8 bytes outside the heap. */
export class NumberList {
  readonly #buffer = new ArrayBuffer(0, { maxByteLength: MAX_BYTES });
  /** Grows with the buffer; the last values may be unused. */
  readonly #values = new Float64Array(this.#buffer);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(value: number): void {
    if (this.#length === this.#values.length) this.#buffer.resize(this.#buffer.byteLength + GROWTH_BYTES);
    this.#values[this.#length++] = value;
  }

  /** Sorts the list. Must be called once, after the last `push`. Four million numbers take 0.4 s. */
  sort(): void {
    this.#values.subarray(0, this.#length).sort();
  }

  /** The values that occur more than once in the sorted list, at most `max`. */
  repeated(max: number): Set<number> {
    const found = new Set<number>();
    for (let i = 1; i < this.#length && found.size < max; i++) {
      if (this.#at(i) === this.#at(i - 1)) found.add(this.#at(i));
    }
    return found;
  }

  /** Removes each of `values` once from the sorted list. The list must contain all of them. */
  remove(values: number[]): void {
    const removed = Float64Array.from(values).sort();
    let kept = 0;
    for (let i = 0; i < this.#length; i++) {
      // `i - kept` values have been removed so far.
      if (this.#at(i) !== removed[i - kept]) this.#values[kept++] = this.#at(i);
    }
    this.#length = kept;
  }

  /** Removes all values and frees their memory. */
  clear(): void {
    this.#length = 0;
    this.#buffer.resize(0);
  }

  /** The first index of a value in the sorted list, by binary search; -1 if it is missing. */
  indexOf(value: number): number {
    let low = 0;
    let high = this.#length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#at(middle) < value) low = middle + 1;
      else high = middle;
    }
    return low < this.#length && this.#at(low) === value ? low : -1;
  }

  #at(index: number): number {
    return this.#values[index] as number;
  }
}
