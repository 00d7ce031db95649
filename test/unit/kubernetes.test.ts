import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parse } from 'yaml';
import packageJson from '../../package.json' with { type: 'json' };
import { secretsIn } from '../../src/config/secrets.js';
import { readConfig, VARIABLES } from '../../src/config/config.js';

/**
 * What the manifests in `deploy/kubernetes` must have in common with the service and other files.
 * `npm test -- kubernetes` validates them against the API, and `npm test -- kubernetes-score` checks rights, selectors,
 * probes, resources and policies.
 */

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const BASE = 'deploy/kubernetes/base';
const SMALL = 'deploy/kubernetes/overlays/small';
const COMPONENTS = readdirSync(join(ROOT, 'deploy/kubernetes/components')).map(
  (name) => `deploy/kubernetes/components/${name}`,
);

/** Within which the server stops after SIGTERM, in seconds (`src/server.ts`). */
const STOP_SECONDS = 9;

interface Container {
  image: string;
  args: string[];
  env: { name: string; value?: string; valueFrom?: { secretKeyRef: object } }[];
  ports: object[];
  lifecycle: { preStop: { sleep: { seconds: number } } };
  volumeMounts: { name: string; mountPath: string }[];
}

interface PodTemplate {
  spec: {
    terminationGracePeriodSeconds: number;
    containers: [Container];
    volumes: { name: string; secret?: { secretName: string } }[];
  };
}

interface Resource {
  kind: string;
  metadata: { name: string; annotations?: Record<string, string> };
  spec: any; // eslint-disable-line @typescript-eslint/no-explicit-any -- tests assert on its shape
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

function yaml(path: string): unknown {
  return parse(read(path), { merge: true });
}

function resourcesIn(folder: string): Resource[] {
  const { resources } = yaml(`${folder}/kustomization.yaml`) as { resources: string[] };
  return resources.flatMap((file) =>
    read(`${folder}/${file}`)
      .split(/^---$/m)
      .map((text) => parse(text) as Resource),
  );
}

/** The lines of a file for `configMapGenerator`, which takes values as they are, without quotes. */
function settingsIn(folder: string): Record<string, string> {
  const lines = read(`${folder}/settings.env`).matchAll(/^([A-Z_]+)=(.*)$/gm);
  return Object.fromEntries([...lines].map(([, name = '', value = '']) => [name, value]));
}

describe('deploy/kubernetes', () => {
  const resources = [BASE, ...COMPONENTS].flatMap(resourcesIn);
  const { services } = yaml('docker-compose.yml') as { services: Record<string, unknown> };
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests assert on its shape
  const specOf = (kind: string, name: string): any =>
    resources.find((one) => one.kind === kind && one.metadata.name === name)?.spec;
  const api = specOf('Deployment', 'api');
  const redis = specOf('Deployment', 'redis').template as PodTemplate;
  const job = specOf('CronJob', 'rebuild').jobTemplate.spec.template as PodTemplate;
  const { spec: pod } = api.template as PodTemplate;
  const [container] = pod.containers;
  const literals = Object.fromEntries(container.env.map(({ name, value }) => [name, value]));
  const environments = {
    base: { ...settingsIn(BASE), ...literals },
    small: { ...settingsIn(BASE), ...settingsIn(SMALL), ...literals },
  };

  it('alerts by the rules of deploy/alerts.yml', () => {
    expect(specOf('PrometheusRule', 'api')).to.deep.equal(yaml('deploy/alerts.yml'));
    expect(specOf('ServiceMonitor', 'api').endpoints[0].relabelings).to.deep.include({
      targetLabel: 'job',
      replacement: 'registry-search',
    });
  });

  for (const [name, environment] of Object.entries(environments)) {
    it(`has a valid configuration without secrets: ${name}`, () => {
      expect([...VARIABLES, 'HTTPS_PROXY', 'NODE_EXTRA_CA_CERTS']).to.include.members(
        Object.keys(environment),
      );
      expect(secretsIn(environment)).to.deep.equal([]);
      const { port, metricsPort, trustedProxies } = readConfig(environment);
      expect(container.ports).to.deep.equal([
        { name: 'http', containerPort: port },
        { name: 'metrics', containerPort: metricsPort },
      ]);
      expect(trustedProxies).not.to.deep.equal([]);
    });
  }

  it('takes each secret from an optional key of the same name', () => {
    const references = container.env.filter(({ value }) => value === undefined);
    expect(references.map(({ name }) => name)).to.include.members([
      'ELASTICSEARCH_API_KEY',
      'REBUILD_SECRET',
      'DATASET_AUTHORIZATION',
    ]);
    for (const { name, valueFrom } of references)
      expect(valueFrom?.secretKeyRef, name).to.include({ key: name, optional: true });
    expect(resources.map(({ kind }) => kind)).not.to.include('Secret');
  });

  it('has one address per Elasticsearch node that its certificate covers', () => {
    const { nodeSets, http } = specOf('Elasticsearch', 'elasticsearch');
    const { nodes } = readConfig(environments.base).elasticsearch;
    expect(nodes).to.have.length(nodeSets[0].count as number);
    expect(readConfig(environments.small).elasticsearch.nodes).to.have.length(1);
    for (const node of nodes) {
      const dns = `*.${new URL(node).hostname.split('.').slice(1).join('.')}`;
      expect(http.tls.selfSignedCertificate.subjectAltNames).to.deep.include({ dns });
    }
  });

  it('runs this release or the next one', () => {
    const { images } = yaml(`${BASE}/kustomization.yaml`) as { images: { name: string; newTag: string }[] };
    const [major = 0, minor = 0, patch = 0] = packageJson.version.split('.').map(Number);
    const tags = [packageJson.version, `${major}.${minor + 1}.0`, `${major}.${minor}.${patch + 1}`];
    expect(images.find(({ name }) => name === container.image)?.newTag).to.be.oneOf(tags);
  });

  it('runs the engines of docker-compose.yml', () => {
    const { version } = specOf('Elasticsearch', 'elasticsearch') as { version: string };
    expect(services['elasticsearch']).to.include({ image: `elasticsearch:${version}` });
    const [{ image, args }] = redis.spec.containers;
    expect(services['redis']).to.deep.include({ image, command: args });
  });

  it('probes /ready only at the start: it keeps replicas without Elasticsearch that have a cache', () => {
    const paths = { startupProbe: '/ready', readinessProbe: '/ping', livenessProbe: '/ping' };
    for (const [probe, path] of Object.entries(paths))
      expect(container).to.have.deep.nested.property(`${probe}.httpGet`, { path, port: 'http' });
  });

  it('replaces replicas that stop in time without reducing their number', () => {
    expect(api).to.have.nested.property('strategy.rollingUpdate.maxUnavailable', 0);
    const delay = container.lifecycle.preStop.sleep.seconds;
    expect(delay).to.be.greaterThan(0);
    expect(pod.terminationGracePeriodSeconds).to.be.greaterThan(delay + STOP_SECONDS);
  });

  it('rebuilds by the port and the secret of the service', () => {
    const [{ args, env }] = job.spec.containers;
    expect(args[0]).to.contain(`'http://api:${specOf('Service', 'api').ports[0].port}/rebuild'`);
    const { secretKeyRef } = env.find(({ name }) => name === 'REBUILD_SECRET')?.valueFrom ?? {};
    const own = container.env.find(({ name }) => name === 'REBUILD_SECRET')?.valueFrom?.secretKeyRef;
    expect(own).to.deep.equal({ ...secretKeyRef, optional: true });
  });

  it('publishes only the API without retries or a log of secrets', () => {
    const [all, secrets] = resources.filter(({ kind }) => kind === 'Ingress');
    const backend = { service: { name: 'api', port: { name: 'http' } } };
    expect(all?.spec.rules[0].http.paths).to.deep.equal([{ path: '/', pathType: 'Prefix', backend }]);
    const exact = ['/rebuild', '/get-bypass'].map((path) => ({ path, pathType: 'Exact', backend }));
    expect(secrets?.spec.rules[0].http.paths).to.deep.equal(exact);
    expect(secrets?.metadata.annotations).to.deep.equal({
      'nginx.ingress.kubernetes.io/proxy-next-upstream': 'off',
      'nginx.ingress.kubernetes.io/enable-access-log': 'false',
    });
  });

  it('mounts the certificate that NODE_EXTRA_CA_CERTS names', () => {
    const volume = pod.volumes.find(({ secret }) => secret !== undefined);
    expect(volume?.secret?.secretName).to.equal('elasticsearch-es-http-certs-public');
    const mount = container.volumeMounts.find(({ name }) => name === volume?.name);
    expect(literals['NODE_EXTRA_CA_CERTS']).to.equal(`${mount?.mountPath}/ca.crt`);
  });
});
