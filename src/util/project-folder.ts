import { existsSync } from 'node:fs';

/**
 * The URL of the folder with `package.json`, `data`, `dist` and `mappings`: the closest folder above this file that has
 * a `package.json`. Builds and bundles put this file at different depths.
 */
export const PROJECT_FOLDER = closestFolderWith('package.json', new URL('.', import.meta.url));

function closestFolderWith(name: string, folder: URL): URL {
  return existsSync(new URL(name, folder)) ? folder : closestFolderWith(name, new URL('..', folder));
}
