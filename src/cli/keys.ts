import { parseArgs } from 'node:util';
import { errors, type Client } from '@elastic/elasticsearch';
import { idOfKey, validKeys } from '../elasticsearch/api-keys.js';
import {
  createAdministratorClient,
  describeAuthError,
  describeConnectionError,
} from '../elasticsearch/elasticsearch.js';
import { ConfigError, readKeysConfig } from '../config/config.js';
import { aliasOf } from '../snapshot/index-names.js';
import { UNAVAILABLE_STATUSES } from '../util/http-response.js';
import { EXIT, exitWith, readArguments, type Exit } from './command.js';
import { builderRole, readerRole } from './key-roles.js';

/**
 * `npm run --silent keys -- --expiration 90d > keys.env`: creates the two API keys of a registry, with the least
 * privileges that the service needs, and prints them as lines of an env file. Older keys stay valid until they expire,
 * or until this command runs with `--revoke-others` and with the new keys in the environment. Exit codes: 0 done, 1
 * failed, 2 misused.
 */

const USAGE = 'usage: npm run --silent keys -- [--expiration 90d | --revoke-others]';

function parseArguments() {
  const { values } = parseArgs({
    options: { expiration: { type: 'string' }, 'revoke-others': { type: 'boolean', default: false } },
  });
  const { expiration } = values;
  if (expiration === undefined) return values;
  if (values['revoke-others']) throw new Error('--expiration and --revoke-others cannot be combined');
  if (!/^[1-9]\d{0,5}[dhm]$/.test(expiration))
    throw new Error('--expiration must be a duration such as 90d, 12h or 30m');
  return values;
}

/** The keys of a registry: their names in Elasticsearch, their environment variables, and their roles. */
function kindsOf(slug: string) {
  const alias = aliasOf(slug);
  return [
    { name: `${alias}-reader`, variable: 'ELASTICSEARCH_API_KEY', role: readerRole(slug) },
    { name: `${alias}-builder`, variable: 'ELASTICSEARCH_REBUILD_API_KEY', role: builderRole(slug) },
  ];
}

type Kind = ReturnType<typeof kindsOf>[number];

const namesOf = (kinds: Kind[]) => kinds.map(({ name }) => name);

async function makeKeys(client: Client, kinds: Kind[], expiration: string | undefined): Promise<void> {
  const older = await validKeys(client, namesOf(kinds));
  const lines: string[] = [];
  for (const { name, variable, role } of kinds) {
    const { encoded } = await client.security.createApiKey({
      name,
      role_descriptors: { [name]: role },
      ...(expiration === undefined ? {} : { expiration }),
    });
    lines.push(`${variable}=${encoded}\n`);
  }
  process.stdout.write(lines.join(''));
  if (older.length > 0)
    console.error(`${older.length} older keys of this registry are still valid: see --revoke-others`);
}

/**
 * Revokes all keys of the registry except the two in the environment.
 * @throws {ConfigError} if one of the two is not valid, because the server's keys could otherwise be revoked.
 */
async function revokeOthers(client: Client, kinds: Kind[], env: NodeJS.ProcessEnv): Promise<void> {
  const valid = await validKeys(client, namesOf(kinds));
  const kept = kinds.map(({ name, variable }) => {
    const key = valid.find((one) => one.name === name && one.id === idOfKey(env[variable] ?? ''));
    if (key === undefined)
      throw new ConfigError(`${variable} must be a valid key of this registry: nothing was revoked`);
    return key;
  });
  const ids = valid.filter((key) => !kept.includes(key)).map(({ id }) => id);
  if (ids.length > 0) await client.security.invalidateApiKey({ ids });
  console.error(`${ids.length} older keys of this registry are revoked`);
}

async function keys(
  env: NodeJS.ProcessEnv,
  { expiration, 'revoke-others': revoke }: ReturnType<typeof parseArguments>,
): Promise<Exit> {
  const { nodes, slug, ...administrator } = readKeysConfig(env);
  const client = createAdministratorClient(nodes, administrator);
  const kinds = kindsOf(slug);
  try {
    await (revoke ? revokeOthers(client, kinds, env) : makeKeys(client, kinds, expiration));
    return EXIT.done;
  } catch (error) {
    const refusal =
      describeAuthError(error, 'ELASTICSEARCH_ADMIN_USER and ELASTICSEARCH_ADMIN_PASSWORD') ??
      describeConnectionError(error) ??
      describeUnready(error);
    throw refusal === undefined ? error : new Error(refusal, { cause: error });
  } finally {
    await client.close();
  }
}

/** For some seconds after its first start, Elasticsearch has no security index. */
function describeUnready(error: unknown): string | undefined {
  const status = error instanceof errors.ResponseError ? error.statusCode : undefined;
  if (status === undefined || !UNAVAILABLE_STATUSES.includes(status)) return undefined;
  return `Elasticsearch is not ready, and responds with ${status}: try again`;
}

const given = readArguments(USAGE, parseArguments);
if (given !== undefined) await exitWith(process.env, () => keys(process.env, given));
