import { mkdir, utimes, writeFile } from 'node:fs/promises';
import { rejects } from 'node:assert/strict';
import { join } from 'node:path';
import { expect } from 'chai';
import { lockFolder } from '../../../dev/lock-folder.js';
import { describeFileError } from '../../../dev/paths.js';
import { newFolder } from '../../support/run-folder.js';

describe('lockFolder', () => {
  let parent: string;
  const lines: string[] = [];
  const lock = (folder: string, waitMs?: number) =>
    lockFolder(
      folder,
      (line) => lines.push(line),
      () => undefined,
      waitMs,
    );

  before(() => (parent = newFolder()));
  beforeEach(() => (lines.length = 0));

  it('waits for another process to stop', async () => {
    const folder = join(parent, 'shared');
    const releaseFirst = await lock(folder);
    const second = lock(folder);
    await rejects(lock(folder, 100), { name: 'SetupError', message: /is running: stop it first/ });
    await releaseFirst();
    await (
      await second
    )();
    expect(lines).to.deep.equal(Array(2).fill('Waiting for another `npm start` of this folder to stop …'));
  });

  it('names the file of a lock that does not expire, because its time is in the future', async () => {
    const folder = join(parent, 'future');
    await mkdir(`${folder}.lock`);
    const tomorrow = Date.now() / 1000 + 86_400;
    await utimes(`${folder}.lock`, tomorrow, tomorrow);
    await rejects(lock(folder, 100), ({ message }: Error) => message.includes(`or delete ${folder}.lock if`));
  });

  it('does not report an unwritable folder as in use', async () => {
    const file = join(parent, 'file');
    await writeFile(file, '');
    for (const folder of [file, join(file, 'data')]) {
      await rejects(lock(folder), (error) => {
        expect(describeFileError(error))
          .to.contain(folder)
          .and.match(/^the files of Elasticsearch and Redis cannot be written \(E.*\): correct that/);
        return true;
      });
    }
    expect(lines).to.deep.equal([]);
  });
});
