import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parse } from 'yaml';
import { VARIABLES } from '../../src/config/config.js';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

interface Service {
  env_file?: string[];
  environment: Record<string, string>;
}

const serviceOf = (path: string, name: string) =>
  (parse(read(path), { merge: true }) as { services: Record<string, Service> }).services[name] as Service;

/** Read by downloads and by Node. */
const OF_DOWNLOADS = ['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY', 'NODE_EXTRA_CA_CERTS'];

/** The image sets where it listens, and this Elasticsearch has no keys. */
const NOT_PASSED = ['PORT', 'HOST', 'ELASTICSEARCH_API_KEY', 'ELASTICSEARCH_REBUILD_API_KEY'];

/** What only Compose knows. */
const ADDRESSES = ['ELASTICSEARCH_URL', 'REDIS_URL', 'METRICS_PORT', 'TRUSTED_PROXIES'];

describe('docker-compose.yml', () => {
  it('passes every variable of `.env` to the service', () => {
    const { environment } = serviceOf('docker-compose.yml', 'api');
    const passed = VARIABLES.filter((name) => !NOT_PASSED.includes(name));
    expect(Object.keys(environment)).to.have.members([...passed, ...OF_DOWNLOADS]);
    for (const name of [...passed, ...OF_DOWNLOADS].filter((one) => !ADDRESSES.includes(one)))
      expect(environment[name]).to.equal(`\${${name}:-}`);
  });

  it('leaves all of them to the file of a sibling, whose example names only variables of the service', () => {
    const { env_file: files, environment } = serviceOf('deploy/siblings.yml', 'sibling');
    expect(files).to.deep.equal(['${SIBLING_ENV:-sibling.env}']);
    expect(Object.keys(environment)).to.have.members(ADDRESSES);
    const names = [...read('deploy/sibling.env').matchAll(/^#?([A-Z_]+)=/gm)].map(([, name]) => name);
    expect(VARIABLES).to.include.members(names);
    expect(names).to.include.members([
      'REGISTRY_SLUG',
      'DATASET_URL',
      'DATASET_FORMAT',
      'PACKAGE_URL_TEMPLATE',
    ]);
  });
});
