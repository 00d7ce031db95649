import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { findPaths } from '../../dev/paths.js';
import { run } from '../../dev/run.js';

/**
 * An earlier version of the service from the history of this clone, built once for all clones of this machine.
 * @returns its folder.
 * @throws {Error} if the clone does not have the commit.
 */
export async function releasedVersion(commit: string): Promise<string> {
  const { programs } = findPaths(process.env);
  const folder = join(programs, `version-${commit}`);
  if (existsSync(folder)) return folder;
  await run('git', ['cat-file', '-e', `${commit}^{commit}`]).catch((cause: unknown) => {
    const message = `the commit ${commit} is not in this clone, which may be shallow: git fetch --unshallow`;
    throw new Error(message, { cause });
  });
  await mkdir(programs, { recursive: true });
  const unfinished = await mkdtemp(`${folder}-`);
  try {
    const archive = join(unfinished, 'source.tar');
    await run('git', ['archive', '--output', archive, commit]);
    await run('tar', ['--extract', '--file', archive, '--directory', unfinished]);
    await rm(archive);
    await run(process.execPath, ['scripts/setup.mjs', '--build'], { cwd: unfinished });
    await rename(unfinished, folder);
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
  return folder;
}
