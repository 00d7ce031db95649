import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Files that every `npm run build` writes: tsc leaves those alone that have not changed. */
const BUILT = ['dist/rebuild/worker.cjs', 'dist/web/index.html'];

/**
 * Tests run the commands and the rebuild process from `dist`.
 * @throws {Error} if a source file is newer.
 */
export function assertBuilt(): void {
  const builtAt = Math.min(...BUILT.map(modifiedAt));
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' });
  const newer = sources.map((path) => join('src', path)).find((path) => modifiedAt(path) > builtAt);
  if (newer !== undefined) throw new Error(`${newer} is newer than dist: run \`npm run build\` first`);
}

/** In milliseconds since 1970; 0 for a missing file. */
function modifiedAt(path: string): number {
  return statSync(join(ROOT, path), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
