import { setTimeout as pause } from 'node:timers/promises';
import { errors, type Client } from '@elastic/elasticsearch';
import type { Logger } from '../util/log.js';
import type { ElasticsearchAccess } from './elasticsearch.js';
import { createReadClient, describeAuthError, describeConnectionError } from './elasticsearch.js';

/**
 * The versions that the service and its client are written for. Ranges of names are found by the skippers of doc
 * values, which 9.4 brought: earlier versions reject the index, and without the skippers would visit every name.
 */
const MAJOR = 9;
const MIN_MINOR = 4;

/** Pause between two checks, in milliseconds. */
const CHECK_PAUSE_MS = 5000;

const NO_KEY = 'Elasticsearch requires ELASTICSEARCH_API_KEY, or a valid user in ELASTICSEARCH_URL';

/** Elasticsearch or Redis at a configured address is unusable. The message is one line for the operator. */
export class ConnectionCheckError extends Error {
  override readonly name = 'ConnectionCheckError';
}

class WrongVersionError extends ConnectionCheckError {}

/** Waits until Elasticsearch responds. Logs an error if its version is not supported. Never throws. */
export async function reportWrongVersion(
  access: ElasticsearchAccess,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const error = await checkElasticsearch(access).catch((failure: unknown) => failure);
    if (error instanceof WrongVersionError) log.error(error.message);
    if (error === undefined || error instanceof WrongVersionError) return;
    await pause(CHECK_PAUSE_MS, undefined, { ref: false });
  }
}

/** @throws {ConnectionCheckError} if the server is silent, has an unsupported version, or rejects the credentials. */
export async function checkElasticsearch(access: ElasticsearchAccess): Promise<void> {
  const client = createReadClient(access);
  try {
    await assertVersion(client);
  } catch (error) {
    const described = describe(error, access.apiKey);
    if (described !== undefined) throw described;
  } finally {
    await client.close();
  }
}

/** @throws {WrongVersionError}, and the errors of the client, for example if the key may not read the version. */
async function assertVersion(client: Client): Promise<void> {
  // The client's usual `Accept` header requires compatibility with version 9. With this header, earlier versions
  // respond, too.
  const { version } = await client.info({}, { headers: { accept: 'application/json' } });
  const [major, minor = 0] = version.number.split('.').map(Number);
  if (major !== MAJOR || minor < MIN_MINOR) {
    throw new WrongVersionError(
      `ELASTICSEARCH_URL: needs Elasticsearch ${MAJOR}.${MIN_MINOR} or newer ${MAJOR}.x, found ${version.number}`,
    );
  }
}

/** Undefined if valid credentials lack the privilege for this request, because no other request needs it. */
function describe(error: unknown, apiKey: string | undefined): Error | undefined {
  const silence = describeConnectionError(error);
  if (silence !== undefined) return new ConnectionCheckError(silence, { cause: error });
  if (!(error instanceof errors.ResponseError)) return error as Error;
  if (error.statusCode === 403) return undefined;
  if (error.statusCode !== 401)
    return new ConnectionCheckError(`Elasticsearch responds with ${error.statusCode} at ELASTICSEARCH_URL`);
  const refusal = apiKey === undefined ? NO_KEY : describeAuthError(error, 'ELASTICSEARCH_API_KEY');
  return new ConnectionCheckError(`${refusal}: make keys with npm run keys`);
}
