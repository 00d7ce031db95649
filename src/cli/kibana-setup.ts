import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { Kibana } from './kibana.js';
import { readKibanaConfig } from '../config/config.js';
import { aliasOf } from '../snapshot/index-names.js';
import { EXIT, exitWith, readArguments, type Exit } from './command.js';
import { PROJECT_FOLDER } from '../util/project-folder.js';

/**
 * `npm run kibana:setup`: waits for Kibana, and imports the data view and the dashboard of this registry, replacing
 * existing ones. Exit codes: 0 done, 1 failed, 2 misused, 130 stopped.
 */

const USAGE = 'usage: npm run kibana:setup, with KIBANA_URL and REGISTRY_SLUG in the environment';

/** The file contains the alias of the default slug, so that it can also be imported by hand. */
const SAVED_OBJECTS = new URL('deploy/kibana/saved-objects.ndjson', PROJECT_FOLDER);
const ALIAS_IN_FILE = aliasOf('registry');

async function setUp(env: NodeJS.ProcessEnv): Promise<Exit> {
  const { slug, ...access } = readKibanaConfig(env);
  const alias = aliasOf(slug);
  const kibana = new Kibana(access);
  await kibana.ready((what) => console.log(`Waiting: ${what}`));
  // Ids and titles contain the alias, too: each registry has its own objects.
  const objects = (await readFile(SAVED_OBJECTS, 'utf8')).replaceAll(ALIAS_IN_FILE, alias);
  const count = await kibana.import(objects);
  console.log(`Kibana now has the dashboard ${alias}: ${count} objects imported.`);
  return EXIT.done;
}

if (readArguments(USAGE, parseArgs) !== undefined) await exitWith(process.env, () => setUp(process.env));
