import { percentDecoded } from '../util/decode.js';

/** Variables whose whole value is secret. */
const SECRETS = [
  'ELASTICSEARCH_API_KEY',
  'ELASTICSEARCH_REBUILD_API_KEY',
  'ELASTICSEARCH_ADMIN_PASSWORD',
  'DATASET_AUTHORIZATION',
  'REBUILD_SECRET',
  'BYPASS_SECRET',
];

/** Variables with the address of a proxy for downloads. */
export const PROXIES = ['HTTPS_PROXY', 'HTTP_PROXY', 'ALL_PROXY'].flatMap((name) => [
  name,
  name.toLowerCase(),
]);
/** Variables with a URL. The user information and the query of the URL may be secret. */
const URLS = ['REDIS_URL', 'DATASET_URL', 'WEIGHTS_URL', ...PROXIES];

const URL_LISTS = { ELASTICSEARCH_URL: ',', DATASET_URL: /\s+/ };

/**
 * All secrets in the environment, in every form in which a library may print them. Reads the raw environment, because
 * secrets are also redacted if the validation fails.
 */
export function secretsIn(env: NodeJS.ProcessEnv): string[] {
  const texts = (names: readonly string[]) => names.map((name) => env[name] ?? '');
  const lists = Object.entries(URL_LISTS).map(([name, separator]) => (env[name] ?? '').split(separator));
  const urls = [...texts(URLS), ...lists.flat()];
  // The credentials without their scheme. `Basic` credentials are `<user>:<password>` in base64, so `keyForms` finds
  // the password in them.
  const [, credentials = ''] = /^\S+ (.*)$/s.exec(env['DATASET_AUTHORIZATION'] ?? '') ?? [];
  const secrets = [...[...texts(SECRETS), credentials].flatMap(keyForms), ...urls.flatMap(urlSecrets)];
  return [...new Set(secrets)].filter((secret) => secret !== '');
}

/** The encodings of a key, and the secret in it: an API key of Elasticsearch is `<id>:<secret>` in base64. */
function keyForms(key: string): string[] {
  const [, secret = ''] =
    /^[\x20-\x7e]+?:([\x20-\x7e]+)$/.exec(Buffer.from(key, 'base64').toString('latin1')) ?? [];
  return [...encodings(key), secret];
}

/** The secrets in a URL. Uses regular expressions, because the URL may be malformed. */
function urlSecrets(text: string): string[] {
  const [, userInfo = ''] = /:\/\/([^/?#]*)@/.exec(text) ?? [];
  const [, query = ''] = /\?([^#]*)/.exec(text.trim()) ?? [];
  const [, user = '', password = ''] = /^([^:]*):?(.*)$/s.exec(userInfo) ?? [];
  const values = query.split('&').map((pair) => pair.slice(pair.indexOf('=') + 1));
  // A user without a password may be a token.
  const credentials =
    password === '' ? encodings(user) : [...encodings(password), basic(user, password), userInfo];
  return [...credentials, ...encodings(query), ...values.flatMap(encodings)];
}

function basic(user: string, password: string): string {
  const pair = [user, password].map((text) => percentDecoded(text) ?? text).join(':');
  return Buffer.from(pair).toString('base64');
}

function encodings(text: string): string[] {
  const plain = percentDecoded(text) ?? text;
  const formEncoded = new URLSearchParams({ '': plain }).toString().slice(1);
  const url = new URL('http://host');
  url.password = plain;
  return [text, plain, encodeURIComponent(plain), formEncoded, url.password];
}
