import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parse } from 'yaml';
import packageJson from '../../package.json' with { type: 'json' };
import { secretsIn } from '../../src/config/secrets.js';
import { readConfig } from '../../src/config/config.js';

/**
 * The manifests in `deploy/kubernetes`, as files: this needs neither a cluster nor Kustomize.
 * `scripts/validate-kubernetes.sh` renders them and validates them against the schemas of the API.
 */

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const BASE = 'deploy/kubernetes/base';
const SMALL = 'deploy/kubernetes/overlays/small';

/** Within which the server stops after SIGTERM, in seconds (`src/server.ts`). */
const STOP_SECONDS = 9;

/** A variable of Node itself. */
const OF_NODE = 'NODE_EXTRA_CA_CERTS';

type Labels = Record<string, string>;

interface Container {
  name: string;
  image: string;
  args?: string[];
  env?: { name: string; value?: string; valueFrom?: { secretKeyRef: object } }[];
  ports: object[];
  lifecycle?: { preStop: { sleep: { seconds: number } } };
  resources: Record<'requests' | 'limits', Record<string, string>>;
  volumeMounts: { name: string; mountPath: string }[];
}

interface Pod {
  terminationGracePeriodSeconds?: number;
  containers: Container[];
  volumes: { name: string; emptyDir?: { sizeLimit: string }; secret?: { secretName: string } }[];
}

interface Resource {
  kind: string;
  metadata: { name: string; labels?: Labels };
  spec: any; // eslint-disable-line @typescript-eslint/no-explicit-any -- tests assert on its shape
}

interface Deployment extends Resource {
  spec: {
    selector: { matchLabels: Labels };
    template: { metadata: { labels: Labels }; spec: Pod };
  };
}

interface Kustomization {
  resources: string[];
  images?: { name: string; newTag: string }[];
  patches?: { path: string; target?: { kind: string; name: string } }[];
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

function yaml(path: string): unknown {
  return parse(read(path), { merge: true });
}

function kustomization(folder: string): Kustomization {
  return yaml(`${folder}/kustomization.yaml`) as Kustomization;
}

/** The lines of a file for `configMapGenerator`, which takes values as they are, without quotes. */
function settingsIn(folder: string): Record<string, string> {
  const lines = read(`${folder}/settings.env`)
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  return Object.fromEntries(
    lines.map((line) => {
      const [, name = '', value = ''] = /^([A-Z_]+)=(.*)$/.exec(line) ?? [];
      expect(name, line).not.to.equal('');
      return [name, value];
    }),
  );
}

/** Whether a selector matches these labels. */
function matches(selector: Labels, labels: Labels | undefined): boolean {
  return Object.entries(selector).every(([name, value]) => labels?.[name] === value);
}

/** Such as 512 for `512Mi`. */
function mebibytes(quantity: string): number {
  const [, number, unit = ''] = /^(\d+)(Mi|Gi)$/.exec(quantity) ?? [];
  expect(number, quantity).not.to.equal(undefined);
  return Number(number) * (unit === 'Gi' ? 1024 : 1);
}

describe('deploy/kubernetes', () => {
  const resources = kustomization(BASE).resources.flatMap((file) =>
    read(`${BASE}/${file}`)
      .split(/^---$/m)
      .map((text) => parse(text) as Resource),
  );
  const { services } = yaml('docker-compose.yml') as { services: Record<string, unknown> };

  const find = (kind: string, name: string): Resource => {
    const found = resources.filter((one) => one.kind === kind && one.metadata.name === name);
    expect(found, `${kind}/${name}`).to.have.length(1);
    return found[0] as Resource;
  };
  const deployments = resources.filter((one): one is Deployment => one.kind === 'Deployment');
  const { spec: api }: Deployment = find('Deployment', 'api');
  const pod = api.template.spec;
  const container = pod.containers[0] as Container;
  const variables = container.env ?? [];
  const literals = Object.fromEntries(variables.map(({ name, value }) => [name, value]));
  const environments = {
    base: { ...settingsIn(BASE), ...literals },
    small: { ...settingsIn(BASE), ...settingsIn(SMALL), ...literals },
  };

  it('lists every file of the base', () => {
    const files = readdirSync(join(ROOT, BASE)).filter((file) => file.endsWith('.yaml'));
    expect(['kustomization.yaml', ...kustomization(BASE).resources].sort()).to.deep.equal(files.sort());
  });

  it('has an overlay whose patches have a target', () => {
    const { resources: bases, patches = [] } = kustomization(SMALL);
    expect(bases).to.deep.equal(['../../base']);
    expect(patches).not.to.deep.equal([]);
    for (const { path, target } of patches) {
      const { kind, metadata } = yaml(`${SMALL}/${path}`) as Resource;
      find(target?.kind ?? kind, target?.name ?? metadata.name);
    }
  });

  it('alerts by the rules of deploy/alerts.yml', () => {
    expect(find('PrometheusRule', 'api').spec).to.deep.equal(yaml('deploy/alerts.yml'));
    const monitor = find('ServiceMonitor', 'api');
    expect(monitor).to.have.nested.property('spec.endpoints').with.length(1);
    expect(monitor)
      .to.have.nested.property('spec.endpoints[0].relabelings')
      .that.deep.includes({ targetLabel: 'job', replacement: 'registry-search' });
  });

  it('sets only variables that docs/configuration.md describes', () => {
    const described = new Set(read('docs/configuration.md').match(/\b[A-Z][A-Z_]+\b/g));
    const names = Object.keys(environments.small).filter((name) => name !== OF_NODE);
    expect(names).to.include.members(['REDIS_URL', 'BYPASS_SECRET']);
    expect(names.filter((name) => !described.has(name))).to.deep.equal([]);
  });

  for (const [name, environment] of Object.entries(environments)) {
    it(`has a valid configuration without secrets: ${name}`, () => {
      expect(secretsIn(environment)).to.deep.equal([]);
      const { port, metricsPort, trustedProxies, elasticsearch, redisUrl } = readConfig(environment);
      expect(container.ports).to.deep.equal([
        { name: 'http', containerPort: port },
        { name: 'metrics', containerPort: metricsPort },
      ]);
      expect(trustedProxies).not.to.deep.equal([]);
      expect(redisUrl).to.equal('redis://redis:6379');
      for (const node of elasticsearch.nodes)
        expect(node).to.match(
          /^https:\/\/elasticsearch-es-default-\d\.elasticsearch-es-default\.registry-search\.svc:9200$/,
        );
    });
  }

  it('takes each secret from an optional key of the same name', () => {
    const references = variables.filter(({ value }) => value === undefined);
    const keys = [
      'ELASTICSEARCH_API_KEY',
      'ELASTICSEARCH_REBUILD_API_KEY',
      'REBUILD_SECRET',
      'BYPASS_SECRET',
    ];
    const access = ['DATASET_URL', 'DATASET_AUTHORIZATION', 'WEIGHTS_URL', 'HTTPS_PROXY'];
    expect(references.map((one) => one.name)).to.have.members([...keys, ...access]);
    for (const { name, valueFrom } of references)
      expect(valueFrom?.secretKeyRef, name).to.include({ key: name, optional: true });
    expect(resources.map(({ kind }) => kind)).not.to.include('Secret');
  });

  it('has one address per Elasticsearch node, which its certificate covers', () => {
    const { spec } = find('Elasticsearch', 'elasticsearch');
    const nodes = (environment: Record<string, string | undefined>) =>
      readConfig(environment).elasticsearch.nodes;
    expect(spec.nodeSets).to.have.nested.property('[0].count', nodes(environments.base).length);
    const patch = { op: 'replace', path: '/spec/nodeSets/0/count', value: 1 };
    expect(yaml(`${SMALL}/elasticsearch.yaml`)).to.deep.include(patch);
    expect(nodes(environments.small)).to.have.length(1);
    for (const node of nodes(environments.base)) {
      const dns = `*.${new URL(node).hostname.split('.').slice(1).join('.')}`;
      expect(spec.http.tls.selfSignedCertificate.subjectAltNames).to.deep.include({ dns });
    }
  });

  it('runs the release, and the engines of docker-compose.yml', () => {
    const tags = kustomization(BASE).images?.filter(({ name }) => name === container.image) ?? [];
    expect(tags).to.have.length(1);
    // Before a release, that of the release: the next minor version or the next patch.
    const [major = 0, minor = 0, patch = 0] = packageJson.version.split('.').map(Number);
    expect(tags[0]?.newTag).to.be.oneOf([
      packageJson.version,
      `${major}.${minor + 1}.0`,
      `${major}.${minor}.${patch + 1}`,
    ]);
    const { version } = find('Elasticsearch', 'elasticsearch').spec as { version: string };
    expect(services['elasticsearch']).to.include({ image: `elasticsearch:${version}` });
    const { spec }: Deployment = find('Deployment', 'redis');
    const [redis] = spec.template.spec.containers;
    expect(services['redis']).to.deep.include({ image: redis?.image, command: redis?.args });
  });

  for (const { metadata, spec } of deployments) {
    describe(`Deployment/${metadata.name}`, () => {
      const { spec: own, metadata: template } = spec.template;

      it('has no rights', () => {
        expect(own).to.have.property('automountServiceAccountToken', false);
        const common = { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } };
        expect(own).to.have.property('securityContext').that.deep.includes(common);
        expect(own).to.have.nested.property('securityContext.runAsUser').that.is.greaterThan(0);
        const none = {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        };
        for (const one of own.containers)
          expect(one, one.name).to.have.deep.property('securityContext', none);
      });

      it('has requests, a limit of memory, and bounded volumes', () => {
        for (const { name, resources: amounts, volumeMounts } of own.containers) {
          expect(amounts.requests, name).to.include.keys('cpu', 'memory', 'ephemeral-storage');
          // A container with less than its limit could be evicted, or killed, while it is within it.
          expect(amounts.limits['memory'], name).to.equal(amounts.requests['memory']);
          const known = own.volumes.map((volume) => volume.name);
          expect(known).to.have.members(volumeMounts.map((mount) => mount.name));
        }
        const disk = own.containers.map(({ resources: { limits } }) => limits['ephemeral-storage'] ?? '0Mi');
        for (const { name, emptyDir } of own.volumes)
          if (emptyDir !== undefined)
            expect(mebibytes(emptyDir.sizeLimit), name).to.be.lessThan(Math.max(...disk.map(mebibytes)));
      });

      it('has probes', () => {
        for (const one of own.containers) expect(one).to.include.keys('readinessProbe', 'livenessProbe');
      });

      it('has consistent labels', () => {
        expect(matches(spec.selector.matchLabels, template.labels)).to.equal(true);
        const { selector } = find('Service', metadata.name).spec;
        expect(matches(selector, template.labels)).to.equal(true);
        const { podSelector } = find('NetworkPolicy', metadata.name).spec;
        expect(matches(podSelector.matchLabels, template.labels)).to.equal(true);
        // A selector that matches both would send requests to the other.
        const others = deployments.filter((other) => other.metadata.name !== metadata.name);
        for (const other of others)
          expect(matches(selector, other.spec.template.metadata.labels)).to.equal(false);
      });
    });
  }

  it('probes /ping, because /health is 503 without Elasticsearch', () => {
    for (const probe of ['startupProbe', 'readinessProbe', 'livenessProbe'])
      expect(container).to.have.deep.nested.property(`${probe}.httpGet`, { path: '/ping', port: 'http' });
  });

  it('replaces replicas without reducing their number, and lets them stop in time', () => {
    expect(api).to.have.nested.property('strategy.rollingUpdate.maxUnavailable', 0);
    const delay = container.lifecycle?.preStop.sleep.seconds ?? 0;
    expect(delay).to.be.greaterThan(0);
    expect(pod.terminationGracePeriodSeconds).to.be.greaterThan(delay + STOP_SECONDS);
  });

  it('lets the autoscaler set the number of replicas, by a metric that the adapter provides', () => {
    expect(api).not.to.have.property('replicas');
    const { metrics, scaleTargetRef, minReplicas } = find('HorizontalPodAutoscaler', 'api').spec;
    expect(scaleTargetRef).to.include({ kind: 'Deployment', name: 'api' });
    expect(minReplicas).to.equal(3);
    const { rules } = yaml('deploy/kubernetes/prometheus-adapter-values.yaml') as {
      rules: { custom: { name: { as: string } }[] };
    };
    expect(metrics).to.have.length(rules.custom.length);
    for (const [i, { name }] of rules.custom.entries())
      expect(metrics).to.have.nested.property(`[${i}].pods.metric.name`, name.as);
  });

  it('mounts the certificate that NODE_EXTRA_CA_CERTS names', () => {
    const volume = pod.volumes.find(({ secret }) => secret !== undefined);
    expect(volume?.secret?.secretName).to.equal('elasticsearch-es-http-certs-public');
    const mount = container.volumeMounts.find(({ name }) => name === volume?.name);
    expect(literals[OF_NODE]).to.equal(`${mount?.mountPath}/ca.crt`);
  });
});
