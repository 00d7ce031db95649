import xxhash from 'xxhash-wasm';
import { Blocks } from '../blocks.js';
import { DatasetError } from '../dataset-error.js';

/** Maximum number of names, by the contract. With versions of ten characters they take 120 MB. */
const MAX_NAMES = 2_000_000;

/** Sizes before the text of a record, in bytes: of the text, and of the address of another record. */
const TEXT = 8;
/** The address of no record; none begins there. */
const NONE = 0;

/**
 * Names in the order of their first occurrence, each with a list of texts, such as versions. They are outside the heap: a `Map`
 * of so many strings would exceed `HEAP_MB` of a rebuild.
 */
export class NameTable {
  /** Records of names, which have the address of their last text, and of texts, which have that of the previous one. */
  readonly #blocks = new Blocks();
  /** The addresses of all names. */
  #names = new Uint32Array(1024);
  /** Positions of names plus 1, or 0, by the hash of the name (open addressing). Always at most half full. */
  #slots = new Uint32Array(2 * 1024);
  #size = 0;

  private constructor(private readonly hashOf: (name: string) => number) {}

  static async create(): Promise<NameTable> {
    const hashes = await xxhash();
    return new NameTable((name) => hashes.h32(name));
  }

  get size(): number {
    return this.#size;
  }

  /** The position of a name, from 0; -1 if it is missing. */
  find(name: string): number {
    return (this.#slots[this.#slotOf(name, this.#write(name))] as number) - 1;
  }

  /**
   * Adds a name, unless it is there.
   * @returns its position. @throws {DatasetError} if there are too many.
   */
  add(name: string): number {
    const address = this.#write(name);
    const slot = this.#slotOf(name, address);
    const found = this.#slots[slot] as number;
    if (found > 0) return found - 1;
    if (this.#size === MAX_NAMES) {
      throw new DatasetError(`the list has more than ${MAX_NAMES} names, which is the limit of this format`);
    }
    this.#claim(address);
    if (this.#size === this.#names.length) this.#grow();
    this.#names[this.#size] = address;
    this.#slots[this.#slotOf(name, address)] = ++this.#size;
    return this.#size - 1;
  }

  /** Adds a text to a name. */
  push(position: number, text: string): void {
    const address = this.#write(text, this.#linkOf(this.#addressOf(position)));
    this.#claim(address);
    this.#setLink(this.#addressOf(position), address);
  }

  nameAt(position: number): string {
    return this.#textOf(this.#addressOf(position));
  }

  /** The last text of a name. */
  lastOf(position: number): string | undefined {
    const address = this.#linkOf(this.#addressOf(position));
    return address === NONE ? undefined : this.#textOf(address);
  }

  /** All texts of a name, the last one first. */
  *textsOf(position: number): Generator<string> {
    let address = this.#linkOf(this.#addressOf(position));
    for (; address !== NONE; address = this.#linkOf(address)) yield this.#textOf(address);
  }

  /** Writes a record after the last one. It is overwritten unless it is claimed. @returns its address. */
  #write(text: string, link = NONE): number {
    const bytes = Buffer.byteLength(text);
    const address = this.#blocks.reserve(TEXT + bytes);
    const block = this.#blocks.blockOf(address);
    const start = this.#blocks.startOf(address);
    block.writeUInt32LE(bytes, start);
    block.writeUInt32LE(link, start + 4);
    block.write(text, start + TEXT);
    return address;
  }

  #claim(address: number): void {
    this.#blocks.claim(address, TEXT + this.#sizeOf(address));
  }

  /** The slot of a name, or the empty one for it. @param address of a record with this name. */
  #slotOf(name: string, address: number): number {
    const mask = this.#slots.length - 1;
    let slot = this.hashOf(name) & mask;
    for (; ; slot = (slot + 1) & mask) {
      const found = this.#slots[slot] as number;
      if (found === 0 || this.#isSame(this.#addressOf(found - 1), address)) return slot;
    }
  }

  #grow(): void {
    const names = new Uint32Array(2 * this.#names.length);
    names.set(this.#names);
    this.#names = names;
    this.#slots = new Uint32Array(2 * names.length);
    for (let position = 0; position < this.#size; position++) {
      const address = this.#addressOf(position);
      this.#slots[this.#slotOf(this.#textOf(address), address)] = position + 1;
    }
  }

  #isSame(a: number, b: number): boolean {
    const size = this.#sizeOf(a);
    if (size !== this.#sizeOf(b)) return false;
    const [startA, startB] = [this.#blocks.startOf(a) + TEXT, this.#blocks.startOf(b) + TEXT];
    return (
      this.#blocks
        .blockOf(a)
        .compare(this.#blocks.blockOf(b), startB, startB + size, startA, startA + size) === 0
    );
  }

  #addressOf(position: number): number {
    return this.#names[position] as number;
  }

  #textOf(address: number): string {
    const start = this.#blocks.startOf(address) + TEXT;
    return this.#blocks.blockOf(address).toString('utf8', start, start + this.#sizeOf(address));
  }

  #sizeOf(address: number): number {
    return this.#blocks.blockOf(address).readUInt32LE(this.#blocks.startOf(address));
  }

  #linkOf(address: number): number {
    return this.#blocks.blockOf(address).readUInt32LE(this.#blocks.startOf(address) + 4);
  }

  #setLink(address: number, link: number): void {
    this.#blocks.blockOf(address).writeUInt32LE(link, this.#blocks.startOf(address) + 4);
  }
}
