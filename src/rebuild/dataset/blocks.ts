import { DatasetError } from './dataset-error.js';

/** Size of a block of records, in bytes. A larger record has its own. */
const BLOCK_BYTES = 2 ** 20;
/** Maximum number of blocks, so that an address has 32 bits: 4 GiB. */
const MAX_BLOCKS = 2 ** 12;

/** Records of bytes outside the heap, which never move. Each has an address of 32 bits, which is never 0. */
export class Blocks {
  readonly #blocks: Buffer[] = [Buffer.allocUnsafe(BLOCK_BYTES)];
  /** Where the next record begins in the last block. */
  #end = 1;

  /**
   * Finds a place for a record after the last one. The next record takes the same place unless this one is claimed.
   * @returns its address. @throws {DatasetError} if there are too many.
   */
  reserve(bytes: number): number {
    if (this.#end >= BLOCK_BYTES || this.#end + bytes > (this.#blocks.at(-1) as Buffer).length) {
      if (this.#blocks.length === MAX_BLOCKS) throw new DatasetError('the names and versions exceed 4 GiB');
      this.#blocks.push(Buffer.allocUnsafe(Math.max(BLOCK_BYTES, bytes)));
      this.#end = 0;
    }
    return (this.#blocks.length - 1) * BLOCK_BYTES + this.#end;
  }

  claim(address: number, bytes: number): void {
    this.#end = this.startOf(address) + bytes;
  }

  /** The block that has a record. */
  blockOf(address: number): Buffer {
    return this.#blocks[Math.floor(address / BLOCK_BYTES)] as Buffer;
  }

  /** Where a record begins in its block. */
  startOf(address: number): number {
    return address % BLOCK_BYTES;
  }
}
