import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { describeOpenFiles } from '../../../src/util/open-files.js';

describe('describeOpenFiles', () => {
  it('describes a limit that is too low, if the system has a limit', () => {
    const folder = mkdtempSync(join(tmpdir(), 'open-files-'));
    const file = join(folder, 'limits');
    const withLimit = (limit: string) => {
      writeFileSync(file, `Max processes   1   1   processes\nMax open files            ${limit}    files\n`);
      return file;
    };
    try {
      for (const [max, limit] of [
        [1000, '256                  256'],
        [1000, '1024                 524288'],
        [100_000, '65535                65535'],
      ] as const)
        expect(describeOpenFiles(max, withLimit(limit)), limit).to.match(
          new RegExp(`^MAX_CONNECTIONS is ${max}, but .* only ${limit.split(' ')[0]} open files`),
        );
      for (const limit of ['1200                 1200', 'unlimited            unlimited'])
        expect(describeOpenFiles(1000, withLimit(limit)), limit).to.equal(undefined);
      expect(describeOpenFiles(1000, join(folder, 'none'))).to.equal(undefined);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
