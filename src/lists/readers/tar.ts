import type { ReadEntry } from 'tar';
import { DatasetError } from '../fetch/dataset-error.js';

/** Receives the bytes of a file. */
export interface FileReader {
  read(chunk: Buffer): void;
  end(): void;
}

/**
 * Reads some files of a tar archive, and yields after each chunk.
 * @param readerOf returns the reader of a file, by the file's path in the archive; undefined if the file is not wanted.
 * @throws {DatasetError} if the archive is damaged or cut off.
 */
export async function* readTar(
  source: AsyncIterable<Buffer>,
  readerOf: (path: string) => FileReader | undefined,
): AsyncGenerator<void> {
  let fault: Error | undefined;
  const archive = { isOver: false };
  const { Parser } = await import('tar');
  const parser = new Parser({ strict: true });
  parser.on('error', (error: Error) => (fault ??= error));
  // After `eof`, only blocks of zeros follow. The parser would read all previous zeros again with each chunk.
  parser.on('eof', () => (archive.isOver = true));
  parser.on('entry', (entry: ReadEntry) => {
    const reader = readerOf(entry.path);
    entry.on('data', (chunk) => reader?.read(chunk));
    entry.on('end', () => reader?.end());
  });
  const assertValid = () => {
    if (fault !== undefined)
      throw new DatasetError('expected a tar archive, complete and undamaged', { cause: fault });
  };
  for await (const chunk of source) {
    if (!archive.isOver) parser.write(chunk);
    assertValid();
    yield;
  }
  parser.end();
  assertValid();
}
