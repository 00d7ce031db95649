import xxhash from 'xxhash-wasm';
import { Blocks } from './blocks.js';
import { DatasetError } from './dataset-error.js';

/** Maximum number of names, that of a dataset. */
const MAX_NAMES = 10_000_000;

/** Parts of a record: the weight, the size of the name and whether it is known, and then the name. */
const SIZE = 8;
const NAME = 10;

/** Set in the size of a name that a dataset has. Names have at most 512 bytes. */
const KNOWN = 0x8000;

/** The slot of no name. */
const EMPTY = 0;

/** The table grows when more than this part of its slots is taken. */
const MAX_LOAD = 0.75;

/**
 * Weights by name, outside the heap: for each name 10 bytes, its text, and 5 to 11 bytes of slots. A hash only says where a
 * name may be; the names themselves are compared, byte by byte. A name can therefore never get the weight of another one.
 */
export class WeightTable {
  readonly #records = new Blocks();
  /** Addresses of records, by the hash of the name (open addressing). */
  #slots = new Uint32Array(2 ** 16);
  #size = 0;
  #known = 0;

  private constructor(private readonly hashOf: (name: string) => number) {}

  static async create(): Promise<WeightTable> {
    const hashes = await xxhash();
    return new WeightTable((name) => hashes.h32(name));
  }

  /** Number of names. */
  get size(): number {
    return this.#size;
  }

  /** Number of those that `take` has found. */
  get known(): number {
    return this.#known;
  }

  /**
   * Adds a name of at most 512 bytes; of a repeated one, the larger weight counts.
   * @throws {DatasetError} if there are too many.
   */
  add(name: string, weight: number): void {
    const address = this.#write(name);
    const slot = this.#slotOf(name, address);
    const found = this.#slots[slot] as number;
    if (found !== EMPTY) {
      if (weight > this.#weightAt(found)) this.#setWeight(found, weight);
      return;
    }
    if (this.#size === MAX_NAMES) throw new DatasetError(`there are more than ${MAX_NAMES} names`);
    this.#setWeight(address, weight);
    this.#records.claim(address, NAME + this.#sizeOf(address));
    this.#slots[slot] = address;
    if (++this.#size > MAX_LOAD * this.#slots.length) this.#grow();
  }

  /** The weight of a name of a dataset, which is known from then on; 0 if it is missing. */
  take(name: string): number {
    const found = this.#find(name);
    if (found === EMPTY) return 0;
    if (!this.#isKnown(found)) {
      this.#known++;
      this.#setSize(found, this.#sizeOf(found) | KNOWN);
    }
    return this.#weightAt(found);
  }

  /** Whether a name is known, and has a weight other than 0. */
  isWeighed(name: string): boolean {
    const found = this.#find(name);
    return found !== EMPTY && this.#isKnown(found) && this.#weightAt(found) > 0;
  }

  /** @returns the address of a name, or `EMPTY`. */
  #find(name: string): number {
    return this.#slots[this.#slotOf(name, this.#write(name))] as number;
  }

  /** Writes a record after the last one. It is overwritten unless it is claimed. @returns its address. */
  #write(name: string): number {
    const bytes = Buffer.byteLength(name);
    const address = this.#records.reserve(NAME + bytes);
    this.#records.blockOf(address).write(name, this.#records.startOf(address) + NAME);
    this.#setSize(address, bytes);
    return address;
  }

  /** The slot of a name, or the empty one for it. @param address of a record with this name. */
  #slotOf(name: string, address: number): number {
    const mask = this.#slots.length - 1;
    let slot = this.hashOf(name) & mask;
    for (; ; slot = (slot + 1) & mask) {
      const found = this.#slots[slot] as number;
      if (found === EMPTY || this.#isSame(found, address)) return slot;
    }
  }

  #grow(): void {
    const addresses = this.#slots;
    this.#slots = new Uint32Array(2 * addresses.length);
    for (const address of addresses) {
      if (address !== EMPTY) this.#slots[this.#slotOf(this.#nameAt(address), address)] = address;
    }
  }

  #isSame(a: number, b: number): boolean {
    const size = this.#sizeOf(a);
    if (size !== this.#sizeOf(b)) return false;
    const [startA, startB] = [this.#records.startOf(a) + NAME, this.#records.startOf(b) + NAME];
    const [blockA, blockB] = [this.#records.blockOf(a), this.#records.blockOf(b)];
    return blockA.compare(blockB, startB, startB + size, startA, startA + size) === 0;
  }

  #nameAt(address: number): string {
    const start = this.#records.startOf(address) + NAME;
    return this.#records.blockOf(address).toString('utf8', start, start + this.#sizeOf(address));
  }

  #weightAt(address: number): number {
    return this.#records.blockOf(address).readDoubleLE(this.#records.startOf(address));
  }

  #setWeight(address: number, weight: number): void {
    this.#records.blockOf(address).writeDoubleLE(weight, this.#records.startOf(address));
  }

  #sizeOf(address: number): number {
    return this.#sizeFieldOf(address) & ~KNOWN;
  }

  #isKnown(address: number): boolean {
    return (this.#sizeFieldOf(address) & KNOWN) !== 0;
  }

  #sizeFieldOf(address: number): number {
    return this.#records.blockOf(address).readUInt16LE(this.#records.startOf(address) + SIZE);
  }

  #setSize(address: number, size: number): void {
    this.#records.blockOf(address).writeUInt16LE(size, this.#records.startOf(address) + SIZE);
  }
}
