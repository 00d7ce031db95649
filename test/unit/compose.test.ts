import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parse } from 'yaml';
import { VARIABLES } from '../../src/config/config.js';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

interface Service {
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

  it('leaves all variables to the file of a sibling, whose example has only variables of the service', () => {
    const { env_file: files, environment } = serviceOf('deploy/siblings.yml', 'sibling');
    expect(files).to.deep.equal(['${SIBLING_ENV:-sibling.env}']);
    expect(environment).to.deep.equal({ ...ENGINES, ...FIXED });
    const names = [...read('deploy/sibling.env').matchAll(/^#?([A-Z_]+)=/gm)].map(([, name]) => name);
    expect(VARIABLES).to.include.members(names);
    expect(names).to.include.members([
      'REGISTRY_SLUG',
      'DATASET_URL',
      'DATASET_FORMAT',
      'PACKAGE_URL_TEMPLATE',
    ]);
  });

  it('labels the files that it mounts for SELinux', () => {
    for (const path of ['docker-compose.yml', 'deploy/siblings.yml']) {
      const mounts = Object.values(servicesOf(path)).flatMap(({ volumes = [] }) => volumes);
      const files = mounts.filter((mount) => mount.startsWith('.'));
      expect(files, path).to.be.an('array').that.is.not.empty;
      for (const file of files) expect(file, path).to.match(/:ro,z$/);
    }
  });

  it('starts Kibana, which takes a third of the memory, and its setup only with the profile', () => {
    const services = { ...servicesOf('docker-compose.yml'), ...servicesOf('deploy/siblings.yml') };
    const withProfile = Object.keys(services).filter((name) => services[name]?.profiles?.includes('kibana'));
    expect(withProfile).to.have.members(['kibana', 'kibana-setup', 'sibling-kibana-setup']);
  });
});
