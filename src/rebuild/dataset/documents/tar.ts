import { Parser, type ReadEntry } from 'tar';
import { DatasetError } from '../dataset-error.js';

/** Receives the bytes of a file. */
export interface FileReader {
  read(chunk: Buffer): void;
  end(): void;
}

/**
 * Reads some files of a tar archive.
 * @param readerOf a file, by its name; undefined if it is not wanted.
 * @throws {DatasetError} if the archive is damaged or cut off.
 */
export async function readTar(
  source: AsyncIterable<Buffer>,
  readerOf: (name: string) => FileReader | undefined,
): Promise<void> {
  let fault: Error | undefined;
  const parser = new Parser({ strict: true });
  parser.on('error', (error: Error) => (fault ??= error));
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
    parser.write(chunk);
    assertValid();
  }
  parser.end();
  assertValid();
}
