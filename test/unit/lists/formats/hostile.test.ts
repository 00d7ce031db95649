import { createGzip, gzipSync } from 'node:zlib';
import { once } from 'node:events';
import { expect } from 'chai';
import type { DatasetFormat } from '../../../../src/config/dataset-format.js';
import { convert, useListServer, type Answer } from '../../../support/list-server.js';

const MEBIBYTE = 2 ** 20;

/**
 * Maximum size of the text that is read before a list is rejected, in bytes. If a reader held an endless value, the
 * download would exceed this limit first, and be rejected for another reason. Unlike the memory of the process, this
 * does not depend on when garbage is collected.
 */
const MAX_BYTES = 128 * MEBIBYTE;

/** Sends a text again and again, as gzip. */
const bomb =
  (start: string, text: string, times: number): Answer =>
  (response) => {
    const gzip = createGzip({ level: 1 });
    gzip.pipe(response);
    const closed = new AbortController();
    response.on('close', () => {
      gzip.destroy();
      closed.abort();
    });
    const chunk = Buffer.from(text.repeat(Math.ceil(MEBIBYTE / text.length)));
    const count = Math.ceil((text.length * times) / chunk.length);
    void (async () => {
      gzip.write(start);
      for (let i = 0; i < count && !gzip.destroyed; i++) {
        if (!gzip.write(chunk)) await once(gzip, 'drain', { signal: closed.signal }).catch(() => undefined);
      }
      gzip.end();
    })();
  };

const SIMPLE = '{"meta":{"api-version":"1.0"},"projects":[';
const nested = (open: string) => `${SIMPLE}${open.repeat(100_000)}`;

const LISTS: [what: string, format: DatasetFormat, list: Answer, reason: RegExp | string][] = [
  ['that is JSON nested 100,000 deep', 'pypi', nested('['), 'the JSON is nested more than 1000 deep'],
  ['whose lines are nested 100,000 deep', 'jsonl', `{"name":${'['.repeat(100_000)}${']'.repeat(100_000)}}\n`, 'line 1: name is not a string: "[\\"…\\"]"'],
  ['with a text of 400 MB', 'pypi', bomb(`${SIMPLE}{"name":"`, 'x', 400 * MEBIBYTE), /^the value after byte \d+ is larger than 4194304 bytes$/],
  ['with an item of 400 MB', 'npm', bomb('{"rows":[{"id":"a","keys":[', '1,', 200 * MEBIBYTE), /^page 1: the value after byte \d+ is larger than 4194304 bytes$/],
  ['with a line of 400 MB', 'lines', bomb('', 'x', 400 * MEBIBYTE), 'line 1: longer than 16777216 bytes'],
  ['with a header of 400 MB', 'csv', bomb('', 'x', 400 * MEBIBYTE), 'line 1: longer than 1048576 bytes, so this is not CSV'],
  ['that is a tar of zeros', 'crates', bomb('', '\0', 100 * MEBIBYTE), 'expected a tar archive, complete and undamaged'],
]; // prettier-ignore

describe('A hostile list', function () {
  // Of work: quadratic time would be minutes.
  this.timeout(60_000);
  const serve = useListServer();

  for (const [what, format, list, reason] of LISTS) {
    it(`${what} is rejected with the bound, in linear time`, async () => {
      const { origin } = await serve(() =>
        typeof list === 'string' && list.length > MEBIBYTE ? gzipSync(list) : list,
      );
      const outcome = await convert(format, `${origin}/list`, { maxBytes: MAX_BYTES });
      if (typeof reason === 'string') expect(outcome).to.equal(reason);
      else expect(outcome).to.match(reason);
    });
  }
});
