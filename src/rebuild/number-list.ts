import { setImmediate as nextTurn } from 'node:timers/promises';

/**
 * Numbers processed between turns of the event loop: sorting this many takes 3 ms. Sorting four million at
 * once would take half a second.
 */
const SLICE = 2 ** 15;

/** Package numbers, 8 bytes each; 16 while they are being sorted. */
export class NumberList {
  /** Until the list is sorted: as pushed, in blocks of `SLICE`. */
  #blocks: Float64Array[] = [];
  #sorted = new Float64Array();
  #length = 0;
  #last = -Infinity;
  #isAscending = true;

  get length(): number {
    return this.#length;
  }

  push(value: number): void {
    const at = this.#length++ % SLICE;
    if (at === 0) this.#blocks.push(new Float64Array(SLICE));
    (this.#blocks.at(-1) as Float64Array)[at] = value;
    if (value < this.#last) this.#isAscending = false;
    this.#last = value;
  }

  /** Sorts the list, once, after the last `push`. The event loop gets a turn after each slice. */
  async sort(): Promise<void> {
    this.#sorted = new Float64Array(this.#length);
    for (let from = 0; from < this.#length; from += SLICE) {
      const block = this.#blocks[from / SLICE] as Float64Array;
      this.#sorted.set(block.subarray(0, this.#length - from), from);
      if (!this.#isAscending) this.#sorted.subarray(from, from + SLICE).sort();
      await nextTurn();
    }
    this.#blocks = [];
    if (!this.#isAscending) await this.#mergeSlices();
  }

  /** The numbers that occur more than once in the sorted list, at most `max`. */
  async repeated(max: number): Promise<number[]> {
    const found: number[] = [];
    for (let i = 1; i < this.#length && found.length < max; i++) {
      if (i % SLICE === 0) await nextTurn();
      const value = this.#at(i);
      if (value === this.#at(i - 1) && value !== found.at(-1)) found.push(value);
    }
    return found;
  }

  /** Removes each of `values` once from the sorted list. */
  async remove(values: number[]): Promise<void> {
    if (values.length === 0) return;
    const due = new Map<number, number>();
    for (const value of values) due.set(value, (due.get(value) ?? 0) + 1);
    let kept = 0;
    for (let i = 0; i < this.#length; i++) {
      if (i % SLICE === 0) await nextTurn();
      const value = this.#at(i);
      const left = due.get(value) ?? 0;
      if (left > 0) due.set(value, left - 1);
      else this.#sorted[kept++] = value;
    }
    this.#length = kept;
  }

  /** The index of a value in the sorted list, by binary search; -1 if it is missing. */
  indexOf(value: number): number {
    let low = 0;
    let high = this.#length - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const found = this.#at(middle);
      if (found === value) return middle;
      if (found < value) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  /** Bottom-up merge sort of the sorted slices, into a second array of the same length. */
  async #mergeSlices(): Promise<void> {
    let from = this.#sorted;
    let to = new Float64Array(this.#length);
    for (let width = SLICE; width < this.#length; width *= 2) {
      for (let start = 0; start < this.#length; start += 2 * width) await merge(from, to, start, width);
      [from, to] = [to, from];
    }
    this.#sorted = from;
  }

  #at(index: number): number {
    return this.#sorted[index] as number;
  }
}

/** Merges two neighbouring sorted runs of `width` numbers, of which the second may be shorter or missing, into `to`. */
async function merge(from: Float64Array, to: Float64Array, start: number, width: number): Promise<void> {
  const middle = Math.min(start + width, from.length);
  const end = Math.min(start + 2 * width, from.length);
  let left = start;
  let right = middle;
  for (let at = start; at < end; at++) {
    if (at % SLICE === 0) await nextTurn();
    const takeLeft = right === end || (left < middle && (from[left] as number) <= (from[right] as number));
    to[at] = from[takeLeft ? left++ : right++] as number;
  }
}
