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
  profiles?: string[];
  volumes?: string[];
  environment: Record<string, string | null>;
}

const servicesOf = (path: string) =>
  (parse(read(path), { merge: true }) as { services: Record<string, Service> }).services;
const serviceOf = (path: string, name: string) => servicesOf(path)[name] as Service;

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

  it('labels the files that it mounts for SELinux', () => {
    for (const path of ['docker-compose.yml', 'deploy/siblings.yml']) {
      const mounts = Object.values(servicesOf(path)).flatMap(({ volumes = [] }) => volumes);
      const files = mounts.filter((mount) => mount.startsWith('.'));
      expect(files, path).to.be.an('array').that.is.not.empty;
      for (const file of files) expect(file, path).to.match(/:ro,z$/);
    }
  });

  it('starts Kibana only with its profile', () => {
    const services = { ...servicesOf('docker-compose.yml'), ...servicesOf('deploy/siblings.yml') };
    const withProfile = Object.keys(services).filter((name) => services[name]?.profiles?.includes('kibana'));
    expect(withProfile).to.have.members(['kibana', 'kibana-setup', 'sibling-kibana-setup']);
  });
});

describe('The import into Kibana', () => {
  const OBJECTS = read('deploy/kibana/saved-objects.ndjson');
  const IMPORTED = '{"successCount":9,"success":true,"warnings":[]}';
  const REJECTED = '{"successCount":8,"success":false,"errors":[{"id":"registry-packages-total"}]}';
  const setupOf = (path: string, name: string) =>
    serviceOf(path, name).command.join('').replaceAll('$$', '$');
  const [, guide = ''] =
    /^```sh\nexport REGISTRY_SLUG=.*\n(sed[^`]+)```$/m.exec(read('docs/operations.md')) ?? [];
  const ADDRESS = /http:\/\/[^/]+:5601/;
  const commands = {
    'docker-compose.yml': setupOf('docker-compose.yml', 'kibana-setup'),
    'deploy/siblings.yml': setupOf('deploy/siblings.yml', 'sibling-kibana-setup'),
    'docs/operations.md': guide,
  };

  /**
   * Runs a command with a Kibana that responds like this, in turn.
   * @returns the received bodies, and the exit code and error output of a command that failed.
   */
  async function importInto(responses: [status: number, body: string][], command: string, slug: string) {
    const bodies: string[] = [];
    const listener: RequestListener = (request, response) =>
      void text(request).then((body) => {
        const isImport = request.url === '/api/saved_objects/_import?overwrite=true';
        const isRight = isImport && request.method === 'POST' && request.headers['kbn-xsrf'] !== undefined;
        const [status, answer] = (isRight ? responses[bodies.push(body) - 1] : undefined) ?? [404, ''];
        response.writeHead(status).end(answer);
      });
    const failure = await withNodes([listener], ([url = '']) => {
      const line = command.replace(ADDRESS, url).replace('--retry-delay 5', '--retry-delay 1');
      return run('env', [`REGISTRY_SLUG=${slug}`, 'sh', '-c', line], { cwd: fileURLToPath(ROOT) }).then(
        () => undefined,
        (error: unknown) => {
          const { code, stderr } = error as { code: number; stderr: string };
          return { code, stderr };
        },
      );
    });
    return { bodies, failure };
  }

  for (const [path, command] of Object.entries(commands)) {
    it(`waits until Kibana is ready and sends the objects of the registry: ${path}`, async () => {
      // The slug begins with the alias of the default registry, and ends like an object of it.
      const slug = 'registry-packages-total';
      const objects = OBJECTS.replaceAll('registry-packages', `${slug}-packages`);
      const starting: [number, string] = [503, 'Kibana server is not ready yet'];
      const { bodies, failure } = await importInto([starting, [200, IMPORTED]], command, slug);
      expect(failure).to.equal(undefined);
      expect(bodies).to.have.length(2);
      expect(bodies[1]).to.match(/ name="file"; filename="[^"]+\.ndjson"\r\n/);
      expect(bodies[1]).to.include(`\r\n\r\n${objects}\r\n--`);
    });

    it(`fails with the response of a Kibana that rejects it: ${path}`, async () => {
      const { failure } = await importInto([[200, REJECTED]], command, 'registry');
      expect(failure).to.deep.equal({ code: 1, stderr: REJECTED });
    });
  }
});
