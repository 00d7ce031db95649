import { readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parse } from 'yaml';
import { run } from '../../dev/run.js';
import { VARIABLES } from '../../src/config/config.js';
import { withNodes } from '../support/node-servers.js';

const ROOT = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, ROOT), 'utf8');

interface Service {
  command: string[];
  env_file?: string[];
  environment: Record<string, string | null>;
}

const serviceOf = (path: string, name: string) =>
  (parse(read(path), { merge: true }) as { services: Record<string, Service> }).services[name] as Service;

/** Read by downloads and by Node. */
const OF_DOWNLOADS = ['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY', 'NODE_EXTRA_CA_CERTS'];

/** The engines of these files, unless `.env` has others. */
const ENGINES = {
  ELASTICSEARCH_URL: '${ELASTICSEARCH_URL:-http://elasticsearch:9200}',
  REDIS_URL: '${REDIS_URL:-redis://redis:6379}',
};

/** What `.env` cannot set: deploy/prometheus.yml names the port, and the proxy is in a network of these files. */
const FIXED = { METRICS_PORT: '9464', TRUSTED_PROXIES: '${FRONT_SUBNET:-172.30.250.0/24}' };

/** The image sets them, and deploy/haproxy.cfg has the port. */
const OF_THE_IMAGE = ['PORT', 'HOST'];

describe('docker-compose.yml', () => {
  it('passes every variable of `.env` to the service', () => {
    const { environment } = serviceOf('docker-compose.yml', 'api');
    const set = { ...ENGINES, ...FIXED };
    const passed = [...VARIABLES, ...OF_DOWNLOADS].filter(
      (name) => !(name in set) && !OF_THE_IMAGE.includes(name),
    );
    expect(environment).to.deep.equal({ ...Object.fromEntries(passed.map((name) => [name, null])), ...set });
  });

  it('leaves all variables to the file of a sibling', () => {
    const { env_file: files, environment } = serviceOf('deploy/siblings.yml', 'sibling');
    expect(files).to.deep.equal(['${SIBLING_ENV:-sibling.env}']);
    expect(environment).to.deep.equal({ ...ENGINES, ...FIXED });
    const names = [...read('deploy/sibling.env').matchAll(/^#?([A-Z_]+)=/gm)].map(([, name]) => name);
    expect(VARIABLES).to.include.members(names);
    expect(names).to.include.members(['REGISTRY_SLUG', 'DATASET_URL']);
  });
});

describe('The import into Kibana', () => {
  const setupOf = (path: string, name: string) =>
    serviceOf(path, name).command.join('').replaceAll('$$', '$');
  const [, guide = ''] =
    /^```sh\nexport REGISTRY_SLUG=.*\n(sed[^`]+)```$/m.exec(read('docs/operations.md')) ?? [];

  for (const [path, command] of [
    ['docker-compose.yml', setupOf('docker-compose.yml', 'kibana-setup')],
    ['deploy/siblings.yml', setupOf('deploy/siblings.yml', 'sibling-kibana-setup')],
    ['docs/operations.md', guide],
  ] as const)
    it(`sends the objects of the registry: ${path}`, async () => {
      // The slug begins with the alias of the default registry, and ends like an object of it.
      const slug = 'registry-packages-total';
      const objects = read('deploy/kibana/saved-objects.ndjson').replaceAll(
        /registry-(packages|rebuilds)/g,
        `${slug}-$1`,
      );
      let received = '';
      const kibana: RequestListener = (request, response) =>
        void text(request).then((body) => {
          received = `${request.method} ${request.url}\n${body}`;
          response.end('{"success":true}');
        });
      await withNodes([kibana], ([url = '']) => {
        const line = command.replace(/http:\/\/[^/]+:5601/, url);
        return run('env', [`REGISTRY_SLUG=${slug}`, 'sh', '-c', line], { cwd: fileURLToPath(ROOT) });
      });
      expect(received).to.match(/^POST \/api\/saved_objects\/_import\?overwrite=true\n/);
      expect(received).to.include(`\r\n\r\n${objects}\r\n--`);
    });
});
