import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { expect } from 'chai';
import { run } from '../../dev/run.js';
import { packagesNamed } from './datasets.js';
import { datasetServer, heldBack } from './dataset-server.js';
import { listen } from './listen.js';
import { useReplicaStarter } from './replica-starter.js';
import { newFolder } from './run-folder.js';
import { newSlug, startService, useService } from './service.js';

/** A search command of a package manager. */
export interface SearchCommand {
  title: string;
  /** The program and its arguments. @param folder the working directory, for files that the program needs. */
  line: (base: string, words: readonly string[], folder: string) => Promise<string[]> | string[];
  env?: Record<string, string>;
  /** The lines that it prints for a package. White space is normalised. */
  printed: (name: string, version: string, description: string) => string[];
  nothing: { status: number; output: RegExp };
  /** What it prints about an error with this text. */
  failure: (detail: string) => RegExp;
}

const PACKAGES = packagesNamed(['python-redis', 'redis-a&b-python', 'redis-py', 'django']).map(
  (entry, i) => ({
    ...entry,
    version: ['5.0', '4.2.0rc1', '1.0'][i] ?? 'latest',
    description: ['A client for <redis> & co', '', 'Ünïcode'][i] ?? '',
  }),
);

/** Variables that keep other configuration out, also that of `npm test`, and make the programs fail instead of waiting. */
function environmentIn(folder: string): NodeJS.ProcessEnv {
  return {
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name))),
    CARGO_HOME: join(folder, 'cargo'),
    RUSTUP_HOME: process.env['RUSTUP_HOME'] ?? join(process.env['HOME'] ?? '', '.rustup'),
    COMPOSER_HOME: join(folder, 'composer'),
    COMPOSER_ALLOW_SUPERUSER: '1',
    PIP_CONFIG_FILE: '/dev/null',
    PIP_DISABLE_PIP_VERSION_CHECK: '1',
    npm_config_cache: join(folder, 'npm'),
    npm_config_userconfig: join(folder, 'npmrc'),
    npm_config_fetch_retries: '0',
    npm_config_update_notifier: 'false',
  };
}

/** Terminates TLS and removes a prefix of the path, as a proxy in front of the service does. */
async function startTlsProxy(prefix: string) {
  const folder = newFolder();
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const made = ['-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, '-subj', '/CN=127.0.0.1'];
  await run('openssl', [
    'req',
    '-x509',
    ...made,
    '-addext',
    'subjectAltName=IP:127.0.0.1',
    '-addext',
    'basicConstraints=critical,CA:FALSE',
  ]);
  const origin = { url: '' };
  const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (incoming, response) => {
    const { method, headers, url = '' } = incoming;
    const path = url.startsWith(`${prefix}/`) ? url.slice(prefix.length) : '/not-found';
    const sent = request(new URL(path, origin.url), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    incoming.pipe(sent);
  });
  const { port, close } = await listen(server);
  return { url: `https://127.0.0.1:${port}${prefix}`, cert, origin, close };
}

/** Tests a search command on a service. */
export function describeSearchCommand({ title, line, env, printed, nothing, failure }: SearchCommand): void {
  describe(title, function () {
    // The first use of some programs takes seconds.
    this.timeout(60_000);
    const suite = useService(() => PACKAGES);
    const startReplica = useReplicaStarter(suite);
    let folder = '';

    beforeEach(() => {
      folder = newFolder();
    });

    async function search(base: string, words: string[], others: Record<string, string> = {}) {
      const [program = '', ...args] = await line(base, words, folder);
      const variables = { ...environmentIn(folder), ...env, ...others };
      return await new Promise<{ status: number; stdout: string; output: string }>((resolve) => {
        execFile(program, args, { cwd: folder, env: variables, timeout: 50_000 }, (error, stdout, stderr) => {
          const status = error === null ? 0 : Number(error.code);
          resolve({
            status,
            stdout,
            output: `${error?.message ?? ''}${stdout}${stderr}`.replace(/\s+/g, ' ').trim(),
          });
        });
      });
    }

    /** Asserts that it prints the packages that `/search` finds. */
    async function expectFound(base: string, words: string[], others?: Record<string, string>) {
      const { body } = await suite.service.get(`/search?match=words&sort=weight&q=${words.join('%20')}`);
      const entries = body.results as { name: string; version: string; description?: string }[];
      const { status, stdout, output } = await search(base, words, others);
      expect(status, output).to.equal(0);
      const lines = stdout.split('\n').map((text) => text.replace(/\s+/g, ' ').trim());
      const expected = entries.flatMap(({ name, version, description = '' }) =>
        printed(name, version, description),
      );
      expect(lines.filter((text) => text !== '')).to.deep.equal(expected.map((text) => text.trim()));
      return entries.length;
    }

    it('prints names and versions for two words', async () => {
      expect(await expectFound(suite.service.url, ['redis', 'python'])).to.equal(2);
      expect(await expectFound(suite.service.url, ['py', 'redis'])).to.equal(3);
    });

    it('says that nothing is found', async () => {
      const { status, output } = await search(suite.service.url, ['missing', 'word']);
      expect(output).to.match(nothing.output);
      expect(status).to.equal(nothing.status);
    });

    it('prints when the limit resets', async () => {
      const replica = await startReplica({ RATE_LIMIT_POINTS: '1' });
      await replica.get('/stats');
      const { status, output } = await search(replica.url, ['redis']);
      expect(output).to.match(
        failure('this request costs 1 point, fewer were left, and the limit resets at 20'),
      );
      expect(status).not.to.equal(0);
    });

    it('prints that the first snapshot is being loaded', async () => {
      const held = heldBack(() => 'name\n');
      const origin = await datasetServer(held.listener);
      const service = await startService({ DATASET_URL: origin.url }, newSlug());
      const { status, output } = await search(service.url, ['redis']);
      held.release();
      await service.end();
      await origin.close();
      expect(output).to.match(failure('the first snapshot is still being loaded'));
      expect(status).not.to.equal(0);
    });

    it('searches behind a proxy with TLS and a path prefix', async () => {
      const { url, cert, origin, close } = await startTlsProxy('/some/registry');
      origin.url = (await startReplica({ PUBLIC_URL: url })).url;
      const certificate = {
        npm_config_cafile: cert,
        CARGO_HTTP_CAINFO: cert,
        PIP_CERT: cert,
        REQUESTS_CA_BUNDLE: cert,
        SSL_CERT_FILE: cert,
      };
      await writeFile(join(folder, '.npmrc'), `cafile=${cert}\n`);
      try {
        expect(await expectFound(url, ['redis', 'python'], certificate)).to.equal(2);
      } finally {
        await close();
      }
    });
  });
}

/** npm, and commands with its options. */
export function npmLike(title: string, program: readonly string[]): SearchCommand {
  return {
    title,
    line: (base, words) => [...program, 'search', '--parseable', '--registry', base, ...words],
    printed: (name, version, description) => [
      `${name} ${description} prehistoric ${version}`.replace('  ', ' '),
    ],
    // A release of npm may warn about the version of Node.
    nothing: { status: 0, output: /^(npm warn .*)?$/ },
    failure: (detail) => new RegExp(`npm error (429|503) .* - GET http\\S* - ${detail}`),
  };
}
