import xxhash from 'xxhash-wasm';
import { DatasetError } from '../fetch/dataset-error.js';

/** Default maximum number of names in a table. With a version of ten characters each, they take 130 MB. */
const MAX_NAMES = 2_000_000;

/** Size of a block, in bytes. A block holds records, one for each name or text. A larger record has its own block. */
const BLOCK_BYTES = 2 ** 20;
/** Maximum number of blocks (4 GiB), so that an address has 32 bits. */
const MAX_BLOCKS = 2 ** 12;

/**
 * Offsets in a record. The size of the name or text, in bytes, comes first. At `LINK`, a name has the address of its
 * last text, and a text has the address of the previous text. Only names have a number, a hash, and the address of the
 * next name.
 */
const LINK = 4;
const NUMBER = 8;
const HASH = 16;
const NEXT = 20;
/** Offsets of the UTF-8 bytes: in the record of a text, and in the record of a name. */
const TEXT_HEAD_BYTES = 8;
const NAME_HEAD_BYTES = 24;

/** Number of items in a batch: few enough to save memory, and enough to make the cost per batch negligible. */
const BATCH = 1000;

/** Address of a missing record, and value of an empty slot. */
const NONE = 0;

/**
 * The table grows when more than this share of its slots is taken. At this load, the lookup of a missing name reads 2.5
 * slots on average.
 */
const MAX_LOAD = 0.5;

/**
 * Names in the order of their first occurrence, each with a number and texts, such as versions. They are stored
 * outside the heap, because a `Map` of 2,000,000 strings would exceed `HEAP_MB` of a rebuild. A name takes its UTF-8
 * bytes, 24 more bytes, and 8 to 16 bytes of slots. A name is identified by its address, which is never 0. Its hash
 * selects the first slot to search. Two names are equal only if all their bytes are equal.
 */
export class NameTable {
  /** Blocks of records. Records never move. */
  readonly #blocks: Buffer[] = [Buffer.allocUnsafe(BLOCK_BYTES)];
  /** Offset after the last record of the last block. */
  #end = 1;
  /** Addresses of the first and the last name. */
  #first = NONE;
  #last = NONE;
  /** Addresses of names, by the hash of the name (open addressing). */
  #slots = new Uint32Array(2 ** 12);
  #size = 0;

  private constructor(
    private readonly hashOf: (name: string) => number,
    private readonly maxNames: number,
  ) {}

  static async create(maxNames = MAX_NAMES): Promise<NameTable> {
    const hashes = await xxhash();
    return new NameTable((name) => hashes.h32(name), maxNames);
  }

  /** Number of names. */
  get size(): number {
    return this.#size;
  }

  /** The address of a name; 0 if it is missing. */
  find(name: string): number {
    return this.#slots[this.#slotOf(this.#writeName(name))] as number;
  }

  /**
   * Adds a name, unless the table has it.
   * @param number is set only if the name is new.
   * @returns the address of the name.
   * @throws {DatasetError} if there are too many names.
   */
  add(name: string, number = NaN): number {
    const address = this.#writeName(name);
    const slot = this.#slotOf(address);
    const found = this.#slots[slot] as number;
    if (found !== NONE) return found;
    if (this.#size === this.maxNames) {
      throw new DatasetError(
        `the list has more than ${this.maxNames} names, which is the limit of this format`,
      );
    }
    this.#claim(address, NAME_HEAD_BYTES);
    this.setNumber(address, number);
    this.#slots[slot] = address;
    if (this.#first === NONE) this.#first = address;
    else this.#write(this.#last + NEXT, address);
    this.#last = address;
    if (++this.#size > MAX_LOAD * this.#slots.length) this.#grow();
    return address;
  }

  /** Calls `toItem` with the address of each name. @returns the defined results, in batches. */
  *map<T>(toItem: (address: number) => T | undefined): Generator<T[]> {
    let batch: T[] = [];
    for (let address = this.#first; address !== NONE; address = this.#read(address + NEXT)) {
      const item = toItem(address);
      if (item === undefined || batch.push(item) < BATCH) continue;
      yield batch;
      batch = [];
    }
    yield batch;
  }

  nameAt(address: number): string {
    return this.#textAt(address, NAME_HEAD_BYTES);
  }

  numberAt(address: number): number {
    return this.#blockOf(address).readDoubleLE(startOf(address) + NUMBER);
  }

  setNumber(address: number, number: number): void {
    this.#blockOf(address).writeDoubleLE(number, startOf(address) + NUMBER);
  }

  /** Adds a text to a name. */
  push(address: number, text: string): void {
    const added = this.#writeText(text, TEXT_HEAD_BYTES);
    this.#write(added + LINK, this.#read(address + LINK));
    this.#claim(added, TEXT_HEAD_BYTES);
    this.#write(address + LINK, added);
  }

  lastTextOf(address: number): string | undefined {
    const text = this.#read(address + LINK);
    return text === NONE ? undefined : this.#textAt(text, TEXT_HEAD_BYTES);
  }

  /** All texts of a name, the last one first. */
  *textsOf(address: number): Generator<string> {
    for (let text = this.#read(address + LINK); text !== NONE; text = this.#read(text + LINK)) {
      yield this.#textAt(text, TEXT_HEAD_BYTES);
    }
  }

  #writeName(name: string): number {
    const address = this.#writeText(name, NAME_HEAD_BYTES);
    this.#write(address + LINK, NONE);
    this.#write(address + NEXT, NONE);
    this.#write(address + HASH, this.hashOf(name));
    return address;
  }

  /**
   * Writes a record after the last claimed record. The next record overwrites it, unless `#claim` is called.
   * @returns its address.
   */
  #writeText(text: string, head: number): number {
    const bytes = Buffer.byteLength(text);
    let block = this.#blocks.at(-1) as Buffer;
    let start = this.#end;
    if (start >= BLOCK_BYTES || start + head + bytes > block.length) {
      if (this.#blocks.length === MAX_BLOCKS) throw new DatasetError('the names and versions exceed 4 GiB');
      block = Buffer.allocUnsafe(Math.max(BLOCK_BYTES, head + bytes));
      this.#blocks.push(block);
      this.#end = start = 0;
    }
    block.writeUInt32LE(bytes, start);
    block.write(text, start + head);
    return (this.#blocks.length - 1) * BLOCK_BYTES + start;
  }

  #claim(address: number, head: number): void {
    this.#end = startOf(address) + head + this.#read(address);
  }

  /** The slot of a name, or the empty slot where it belongs. @param address of a record with this name. */
  #slotOf(address: number): number {
    const mask = this.#slots.length - 1;
    let slot = this.#read(address + HASH) & mask;
    for (; ; slot = (slot + 1) & mask) {
      const found = this.#slots[slot] as number;
      if (found === NONE || this.#isSame(found, address)) return slot;
    }
  }

  #grow(): void {
    const addresses = this.#slots;
    this.#slots = new Uint32Array(2 * addresses.length);
    for (const address of addresses) {
      if (address !== NONE) this.#slots[this.#slotOf(address)] = address;
    }
  }

  #isSame(a: number, b: number): boolean {
    const size = this.#read(a);
    if (this.#read(a + HASH) !== this.#read(b + HASH) || size !== this.#read(b)) return false;
    const [startA, startB] = [startOf(a) + NAME_HEAD_BYTES, startOf(b) + NAME_HEAD_BYTES];
    return this.#blockOf(a).compare(this.#blockOf(b), startB, startB + size, startA, startA + size) === 0;
  }

  #textAt(address: number, head: number): string {
    const start = startOf(address) + head;
    return this.#blockOf(address).toString('utf8', start, start + this.#read(address));
  }

  #read(address: number): number {
    return this.#blockOf(address).readUInt32LE(startOf(address));
  }

  #write(address: number, value: number): void {
    this.#blockOf(address).writeUInt32LE(value >>> 0, startOf(address));
  }

  #blockOf(address: number): Buffer {
    return this.#blocks[Math.floor(address / BLOCK_BYTES)] as Buffer;
  }
}

/** Offset of a record in its block. */
function startOf(address: number): number {
  return address % BLOCK_BYTES;
}
