import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ELASTICSEARCH_IMAGE, REDIS_IMAGE } from '../../../dev/docker.js';
import { assembleElasticsearch, writeBasicConfiguration } from '../../../dev/elasticsearch.js';
import { findJdk } from '../../../dev/jdk.js';
import { findPaths } from '../../../dev/paths.js';
import { run } from '../../../dev/run.js';

/**
 * `npm test -- images` provides the images of this project's containers on a machine that cannot pull
 * them. An image that is missing and cannot be pulled is built under the same name from packages of Debian,
 * npm and Maven Central. It behaves like the real one as far as this project uses it, and has a label with
 * its origin.
 */

/** The Debian release of all images: its HAProxy and Redis have the versions of the tags. */
const DEBIAN = 'trixie';
const PACKAGES = ['ca-certificates', 'curl', 'haproxy', 'redis-server', 'tcc', 'tini', 'wget'];
const BASE_IMAGE = `package-registry-search-offline-base:${DEBIAN}`;

const LABEL = 'package-registry-search.origin=npm test -- images; not the official image';
/** A build that takes longer is considered stuck. In milliseconds. */
const BUILD_TIMEOUT_MS = 10 * 60_000;

/** Adds files to the build context, beyond those of the image's folder. */
type Fill = (context: string) => Promise<unknown>;

const images: Record<string, { folder: string; fill?: Fill }> = {
  [ELASTICSEARCH_IMAGE]: { folder: 'elasticsearch', fill: addElasticsearch },
  [REDIS_IMAGE]: { folder: 'redis' },
  'node:24-trixie-slim': { folder: 'node', fill: addNode },
  'haproxy:3.0-alpine': { folder: 'haproxy' },
  'prom/prometheus:v3.5.0': { folder: 'prometheus', fill: addPrometheus },
};

async function addElasticsearch(context: string): Promise<void> {
  const { signal } = new AbortController();
  const home = await assembleElasticsearch(findPaths(process.env), console.log, signal);
  await cp(home, join(context, 'home'), {
    recursive: true,
    filter: (path) => path !== join(home, 'config'),
  });
  // Packaged JDKs link to files elsewhere on the machine.
  await run('cp', ['-rL', await findJdk(process.env, undefined), join(context, 'jdk')]);
  await mkdir(join(context, 'config'));
  writeBasicConfiguration(home, join(context, 'config'));
}

function addNode(context: string): Promise<string> {
  const packages = [`node-linux-${process.arch}@24`, 'npm@11'];
  return run('npm', ['install', '--prefix', context, '--no-save', '--ignore-scripts', ...packages]);
}

/** That of this machine, which is of Debian, too. */
async function addPrometheus(context: string): Promise<void> {
  const path = (await run('sh', ['-c', 'command -v prometheus'])).trim();
  await cp(path, join(context, 'prometheus'), { dereference: true });
}

/** The base of all images: a minimal Debian with the certificate authorities that this machine trusts. */
async function buildBase(): Promise<void> {
  console.log(`Building ${BASE_IMAGE} …`);
  await inScratch(async (folder) => {
    const root = join(folder, 'root');
    await run('debootstrap', ['--variant=minbase', `--include=${PACKAGES.join(',')}`, DEBIAN, root], {
      timeoutMs: BUILD_TIMEOUT_MS,
    });
    const authorities = 'etc/ssl/certs/ca-certificates.crt';
    await cp(join('/', authorities), join(root, authorities));
    const pack = 'tar --create --numeric-owner --directory "$1" . | docker import --change "LABEL $2" - "$3"';
    await run('sh', ['-c', pack, 'pack', root, LABEL.replace(/=(.*)/, '="$1"'), BASE_IMAGE]);
  });
}

async function build(image: string): Promise<void> {
  const { folder, fill } = images[image] ?? {};
  if (folder === undefined) throw new Error(`unknown image: ${image}`);
  if (!(await succeeds('image', 'inspect', BASE_IMAGE))) await buildBase();
  console.log(`Building ${image} …`);
  await inScratch(async (context) => {
    await cp(fileURLToPath(new URL(folder, import.meta.url)), context, { recursive: true });
    await fill?.(context);
    const options = ['--label', LABEL, '--build-arg', `BASE=${BASE_IMAGE}`, '--tag', image];
    await run('docker', ['build', ...options, context], { timeoutMs: BUILD_TIMEOUT_MS });
  });
}

async function inScratch(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'package-registry-search-image-'));
  await work(folder).finally(() => rm(folder, { recursive: true, force: true }));
}

/** Whether a command of Docker succeeds. */
function succeeds(...docker: string[]): Promise<boolean> {
  return run('docker', docker, { timeoutMs: BUILD_TIMEOUT_MS }).then(
    () => true,
    () => false,
  );
}

// Fails at once if there is no Docker engine.
await run('docker', ['version']);
for (const image of Object.keys(images)) {
  const isAvailable =
    (await succeeds('image', 'inspect', image)) || (await succeeds('pull', '--quiet', image));
  if (!isAvailable) await build(image);
}
console.log(`Available: ${Object.keys(images).join(', ')}.`);
