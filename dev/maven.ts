import { existsSync, mkdirSync } from 'node:fs';
import { mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { SetupError, type Log } from './service.js';
import { run } from './run.js';

const UNPACK_PLUGIN = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:unpack';

/** Maven is installed, but could not fetch an artifact. */
export class DownloadError extends SetupError {}

interface Artifact {
  /** `group:name:version:packaging` */
  coordinates: string;
  /** The files to unpack. */
  includes: string;
  /** Name for messages. */
  title: string;
  /** The download's size in bytes, for the progress. */
  bytes: number;
}

/**
 * Unpacks a file or a folder of a Maven artifact to `target`, unless `target` exists. The download is not kept.
 * @param pick returns the unpacked path that becomes `target`.
 * @throws {SetupError} if Maven is not installed.
 * @throws {DownloadError} if Maven cannot fetch the artifact.
 */
export async function unpackOnce(
  artifact: Artifact,
  target: string,
  pick: (unpacked: string) => Promise<string>,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  if (existsSync(target)) return;
  const parent = join(target, '..');
  mkdirSync(parent, { recursive: true });
  // Next to the target, so that the last step is an atomic rename.
  const scratch = await mkdtemp(join(parent, 'download-'));
  const meter = reportSize(scratch, artifact, log);
  try {
    const output = join(scratch, 'unpacked');
    await run(
      'mvn',
      [
        '-q',
        '-B',
        `-Dmaven.repo.local=${join(scratch, 'repository')}`,
        UNPACK_PLUGIN,
        `-Dartifact=${artifact.coordinates}`,
        `-DoutputDirectory=${output}`,
        `-Dmdep.unpack.includes=${artifact.includes}`,
      ],
      { cwd: scratch, signal },
    );
    const picked = await pick(output);
    await run('chmod', ['-R', 'a+rX', picked]);
    await rename(picked, target).catch((error: unknown) => {
      // Another process may have created the target meanwhile.
      if (!existsSync(target)) throw error;
    });
  } catch (error) {
    signal.throwIfAborted();
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new SetupError('Maven (mvn) is not installed');
    const reason =
      /\[ERROR\] (.*)/.exec(`${message}\n${String((error as { stdout?: string }).stdout)}`)?.[1] ?? message;
    throw new DownloadError(`Maven could not fetch ${artifact.title}: ${reason}`, { cause: error });
  } finally {
    clearInterval(meter);
    await rm(scratch, { recursive: true, force: true });
  }
}

/** The first path below `folder` for which `matches` returns true. @throws {Error} if there is none. */
export async function findIn(folder: string, matches: (path: string) => boolean): Promise<string> {
  const found = (await readdir(folder, { recursive: true })).find(matches);
  if (found === undefined) throw new Error('the artifact does not contain the expected file');
  return join(folder, found);
}

function reportSize(folder: string, { title, bytes }: Artifact, log: Log): NodeJS.Timeout {
  const megabytes = (n: number) => Math.round(n / 1e6);
  log(`Downloading ${title} with Maven (${megabytes(bytes)} MB, once) …`);
  const measure = async () => {
    const files = await readdir(folder, { recursive: true, withFileTypes: true });
    const sizes = files
      .filter((file) => file.isFile() && file.name.includes('.zip'))
      .map(async (file) => (await stat(join(file.parentPath, file.name))).size);
    const total = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
    if (total > 0) log(`  ${megabytes(total)} of ${megabytes(bytes)} MB`);
  };
  // A file may vanish while it is measured; the next measurement follows in a few seconds.
  return setInterval(() => void measure().catch(() => undefined), 5000);
}
