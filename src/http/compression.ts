import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';

/** Values of `Content-Encoding`. */
export type Encoding = 'br' | 'gzip';

type Effort = 'quick' | 'best';

const LEVELS: Record<Effort, Record<Encoding, number>> = {
  // Brotli: good compression in a tenth of the time of the best.
  quick: { br: 5, gzip: constants.Z_DEFAULT_COMPRESSION },
  best: { br: constants.BROTLI_MAX_QUALITY, gzip: constants.Z_BEST_COMPRESSION },
};

type Done = (error: Error | null, result: Buffer) => void;

const compressors: Record<Encoding, (body: Buffer, level: number) => Promise<Buffer>> = {
  br: promisify((body: Buffer, level: number, done: Done) =>
    brotliCompress(body, { params: { [constants.BROTLI_PARAM_QUALITY]: level } }, done),
  ),
  gzip: promisify((body: Buffer, level: number, done: Done) => gzip(body, { level }, done)),
};

/** Compresses a body outside of the event loop. @param effort `quick` for one response, `best` for a file. */
export function compress(body: Buffer, encoding: Encoding, effort: Effort): Promise<Buffer> {
  return compressors[encoding](body, LEVELS[effort][encoding]);
}
