import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import type { Administrator } from './node-security.js';
import { keepSecret } from './secret-scanner.js';
import { environmentOf } from './service.js';
import { runCommand } from './spawn-cli.js';

/** The superuser of the secured Elasticsearch nodes of a suite. */
export const ADMINISTRATOR: Administrator = {
  user: 'administrator',
  password: keepSecret(randomBytes(12).toString('hex')),
};

/** The same for the Elasticsearch client. */
export const ADMINISTRATOR_AUTH = { username: ADMINISTRATOR.user, password: ADMINISTRATOR.password };

/** The same for `npm run keys`. */
export const ADMINISTRATOR_ENV = {
  ELASTICSEARCH_ADMIN_USER: ADMINISTRATOR.user,
  ELASTICSEARCH_ADMIN_PASSWORD: ADMINISTRATOR.password,
};

/** The variables with the keys of a registry. */
export type Keys = Record<'ELASTICSEARCH_API_KEY' | 'ELASTICSEARCH_REBUILD_API_KEY', string>;

/** Parses what `npm run keys` prints, and registers the keys and their parts as secrets. */
export function readKeys(stdout: string): Keys {
  const [, reader = '', builder = ''] =
    /^ELASTICSEARCH_API_KEY=(\S+)\nELASTICSEARCH_REBUILD_API_KEY=(\S+)\n$/.exec(stdout) ?? [];
  for (const key of [reader, builder]) {
    const [, secret = ''] = Buffer.from(keepSecret(key), 'base64').toString().split(':');
    expect(keepSecret(secret)).to.have.length.greaterThan(20);
  }
  return { ELASTICSEARCH_API_KEY: reader, ELASTICSEARCH_REBUILD_API_KEY: builder };
}

/** Creates the keys of a registry by `npm run keys`. @param url of Elasticsearch. */
export async function makeKeys(slug: string, url: string, args: string[] = []): Promise<Keys> {
  const env = { ...environmentOf(slug), ELASTICSEARCH_URL: url, ...ADMINISTRATOR_ENV };
  const { code, stdout, stderr } = await runCommand('cli/keys', env, args);
  // A new cluster has just started.
  if (stderr.endsWith(': try again\n')) return pause(1000).then(() => makeKeys(slug, url, args));
  expect(code, stderr).to.equal(0);
  return readKeys(stdout);
}
