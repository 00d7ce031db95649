import { pbkdf2Sync, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The superuser of an Elasticsearch that has security enabled. */
export interface Administrator {
  user: string;
  password: string;
}

/** The parameters that Elasticsearch's own tool uses for PBKDF2 hashes. */
const ITERATIONS = 10_000;
const HASH_BYTES = 32;

/**
 * Writes the only user of a node into its configuration folder, for Elasticsearch's file realm.
 * @returns the settings that enable security, for HTTP on loopback, and the headers of the user's requests.
 */
export function enableSecurity({ user, password }: Administrator, config: string) {
  writeFileSync(join(config, 'users'), `${user}:${hash(password)}\n`);
  writeFileSync(join(config, 'users_roles'), `superuser:${user}\n`);
  const settings = {
    'xpack.security.enabled': true,
    'xpack.security.enrollment.enabled': false,
    'xpack.security.http.ssl.enabled': false,
    'xpack.security.transport.ssl.enabled': false,
  };
  const token = Buffer.from(`${user}:${password}`).toString('base64');
  return { settings, headers: { authorization: `Basic ${token}` } };
}

function hash(password: string): string {
  const salt = randomBytes(HASH_BYTES);
  const key = pbkdf2Sync(password, salt, ITERATIONS, HASH_BYTES, 'sha512');
  return `{PBKDF2}${ITERATIONS}$${salt.toString('base64')}$${key.toString('base64')}`;
}
