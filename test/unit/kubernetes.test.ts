import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parse } from 'yaml';
import packageJson from '../../package.json' with { type: 'json' };
import { secretsIn } from '../../src/config/secrets.js';
import { readConfig } from '../../src/config/config.js';
import { isAllowed, type Endpoint, type NetworkPolicy } from '../support/network-policies.js';

/**
 * The manifests in `deploy/kubernetes`, as files: this needs neither a cluster nor Kustomize.
 * `test/deploy/kubernetes/validate.sh` renders them and validates them against the schemas of the API.
 */

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const BASE = 'deploy/kubernetes/base';
const SMALL = 'deploy/kubernetes/overlays/small';
const FULL = 'deploy/kubernetes/overlays/full';
const COMPONENTS = readdirSync(join(ROOT, 'deploy/kubernetes/components')).map(
  (name) => `deploy/kubernetes/components/${name}`,
);

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
  startupProbe: { periodSeconds: number; failureThreshold: number };
  lifecycle?: { preStop: { sleep: { seconds: number } } };
  resources: Record<'requests' | 'limits', Record<string, string>>;
  volumeMounts?: { name: string; mountPath: string }[];
}

interface Pod {
  terminationGracePeriodSeconds?: number;
  containers: Container[];
  volumes?: { name: string; emptyDir?: { sizeLimit: string }; secret?: { secretName: string } }[];
}

interface PodTemplate {
  metadata: { labels: Labels };
  spec: Pod;
}

interface Resource {
  apiVersion: string;
  kind: string;
  metadata: { name: string; labels?: Labels; annotations?: Labels };
  spec: any; // eslint-disable-line @typescript-eslint/no-explicit-any -- tests assert on its shape
}

interface Deployment extends Resource {
  spec: {
    replicas: number;
    progressDeadlineSeconds: number;
    selector: { matchLabels: Labels };
    template: PodTemplate;
  };
}

interface Kustomization {
  resources: string[];
  components?: string[];
  images?: { name: string; newTag: string }[];
  patches?: { path?: string; patch?: string; target?: { kind: string; name: string } }[];
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
  const resourcesIn = (folder: string) =>
    kustomization(folder).resources.flatMap((file) =>
      read(`${folder}/${file}`)
        .split(/^---$/m)
        .map((text) => parse(text) as Resource),
    );
  const base = resourcesIn(BASE);
  /** Of the base and all components. */
  const resources = [...base, ...COMPONENTS.flatMap(resourcesIn)];
  const { services } = yaml('docker-compose.yml') as { services: Record<string, unknown> };

  const find = (kind: string, name: string): Resource => {
    const found = resources.filter((one) => one.kind === kind && one.metadata.name === name);
    expect(found, `${kind}/${name}`).to.have.length(1);
    return found[0] as Resource;
  };
  const deployments = resources.filter((one): one is Deployment => one.kind === 'Deployment');
  const job = find('CronJob', 'rebuild').spec;
  /** The templates of all pods, by the resource that makes them. */
  const pods: Record<string, PodTemplate> = Object.fromEntries([
    ...deployments.map(({ metadata, spec }) => [`Deployment/${metadata.name}`, spec.template] as const),
    ['CronJob/rebuild', job.jobTemplate.spec.template as PodTemplate],
  ]);
  const { spec: api }: Deployment = find('Deployment', 'api');
  const pod = api.template.spec;
  const container = pod.containers[0] as Container;
  const variables = container.env ?? [];
  const literals = Object.fromEntries(variables.map(({ name, value }) => [name, value]));
  const environments = {
    base: { ...settingsIn(BASE), ...literals },
    small: { ...settingsIn(BASE), ...settingsIn(SMALL), ...literals },
  };

  it('lists every file of the base and the components', () => {
    const values = 'prometheus-adapter-values.yaml';
    for (const folder of [BASE, ...COMPONENTS]) {
      const files = readdirSync(join(ROOT, folder)).filter(
        (file) => file.endsWith('.yaml') && file !== values,
      );
      const { resources: listed } = kustomization(folder);
      expect(['kustomization.yaml', ...listed].sort(), folder).to.deep.equal(files.sort());
    }
  });

  it('has overlays whose patches have a target: one without, and one with all components', () => {
    for (const folder of [SMALL, FULL]) {
      const { resources: bases, components = [], patches = [] } = kustomization(folder);
      expect(bases).to.deep.equal(['../../base']);
      const paths = components.map((path) => join(folder, path));
      expect(paths).to.have.members(folder === FULL ? COMPONENTS : []);
      expect(patches).not.to.deep.equal([]);
      for (const { path, target } of patches) {
        const { kind, metadata } = yaml(`${folder}/${path}`) as Resource;
        find(target?.kind ?? kind, target?.name ?? metadata.name);
      }
    }
  });

  it('needs only the operator of Elastic without components', () => {
    const groups = base.map(({ apiVersion }) => apiVersion.split('/')[0] ?? '');
    expect(groups.filter((group) => /\.(co|com)$/.test(group))).to.deep.equal([
      'elasticsearch.k8s.elastic.co',
    ]);
  });

  it('delivers the dashboard as the ConfigMap that Grafana looks for', () => {
    const { configMapGenerator } = yaml('deploy/grafana/kustomization.yaml') as {
      configMapGenerator: object[];
    };
    expect(configMapGenerator).to.have.length(1);
    expect(configMapGenerator[0]).to.deep.include({
      files: ['registry-search.json'],
      options: { labels: { grafana_dashboard: '1' }, disableNameSuffixHash: true },
    });
    const { components = [] } = kustomization('deploy/kubernetes/components/prometheus');
    expect(components.map((path) => join('deploy/kubernetes/components/prometheus', path))).to.deep.equal([
      'deploy/grafana',
    ]);
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

  for (const [name, { spec: own }] of Object.entries(pods)) {
    describe(`The pods of ${name}`, () => {
      it('have no rights', () => {
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

      it('have requests, a limit of memory, and bounded volumes', () => {
        const { volumes = [] } = own;
        for (const { name, resources: amounts, volumeMounts = [] } of own.containers) {
          expect(amounts.requests, name).to.include.keys('cpu', 'memory', 'ephemeral-storage');
          // A container with less than its limit could be evicted, or killed, while it is within it.
          expect(amounts.limits['memory'], name).to.equal(amounts.requests['memory']);
          const known = volumes.map((volume) => volume.name);
          expect(known).to.have.members(volumeMounts.map((mount) => mount.name));
        }
        const disk = own.containers.map(({ resources: { limits } }) => limits['ephemeral-storage'] ?? '0Mi');
        for (const { name, emptyDir } of volumes)
          if (emptyDir !== undefined)
            expect(mebibytes(emptyDir.sizeLimit), name).to.be.lessThan(Math.max(...disk.map(mebibytes)));
      });
    });
  }

  for (const { metadata, spec } of deployments) {
    describe(`Deployment/${metadata.name}`, () => {
      const { spec: own, metadata: template } = spec.template;

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
        const others = Object.values(pods).filter((other) => other !== spec.template);
        expect(others).to.have.length(2);
        for (const other of others) expect(matches(selector, other.metadata.labels)).to.equal(false);
      });
    });
  }

  it('probes /ready until Elasticsearch has responded once, and then /ping: /health is 503 without it', () => {
    const paths = { startupProbe: '/ready', readinessProbe: '/ping', livenessProbe: '/ping' };
    for (const [probe, path] of Object.entries(paths))
      expect(container).to.have.deep.nested.property(`${probe}.httpGet`, { path, port: 'http' });
  });

  it('lets replicas wait for the first keys, and reports an update that waits', () => {
    const { periodSeconds, failureThreshold } = container.startupProbe;
    // `kubectl exec` must reach them while Elasticsearch starts and the keys are created.
    expect(periodSeconds * failureThreshold).to.be.greaterThan(10 * 60);
    expect(api.progressDeadlineSeconds).to.be.lessThan(periodSeconds * failureThreshold);
  });

  it('replaces replicas without reducing their number, and lets them stop in time', () => {
    expect(api).to.have.nested.property('strategy.rollingUpdate.maxUnavailable', 0);
    const delay = container.lifecycle?.preStop.sleep.seconds ?? 0;
    expect(delay).to.be.greaterThan(0);
    expect(pod.terminationGracePeriodSeconds).to.be.greaterThan(delay + STOP_SECONDS);
  });

  it('lets the autoscaler set the number of replicas, by a metric that the adapter provides', () => {
    const folder = 'deploy/kubernetes/components/autoscaler';
    const { patches = [] } = kustomization(folder);
    expect(parse(patches[0]?.patch ?? '')).to.deep.equal([{ op: 'remove', path: '/spec/replicas' }]);
    const { metrics, scaleTargetRef, minReplicas } = find('HorizontalPodAutoscaler', 'api').spec;
    expect(scaleTargetRef).to.include({ kind: 'Deployment', name: 'api' });
    expect(minReplicas).to.equal(3).and.to.equal(api.replicas);
    const { rules } = yaml(`${folder}/prometheus-adapter-values.yaml`) as {
      rules: { custom: { name: { as: string } }[] };
    };
    expect(metrics).to.have.length(rules.custom.length);
    for (const [i, { name }] of rules.custom.entries())
      expect(metrics).to.have.nested.property(`[${i}].pods.metric.name`, name.as);
  });

  it('runs the job that rebuilds with the image and the secret of the service', () => {
    const { replacements } = yaml('deploy/kubernetes/components/rebuild-job/kustomization.yaml') as {
      replacements: { source: { name: string }; targets: { select: { name: string } }[] }[];
    };
    expect(replacements.map(({ source }) => source.name)).to.deep.equal(['api']);
    expect(replacements[0]?.targets.map(({ select }) => select.name)).to.deep.equal(['rebuild']);
    const { containers } = pods['CronJob/rebuild']?.spec ?? { containers: [] };
    expect(containers).to.have.length(1);
    const [variable] = containers[0]?.env ?? [];
    expect(variable).to.deep.equal({
      name: 'REBUILD_SECRET',
      valueFrom: { secretKeyRef: { name: 'registry-search', key: 'REBUILD_SECRET' } },
    });
    const { spec } = find('Service', 'api');
    expect(containers[0]?.args?.[0]).to.contain(`'http://api:${spec.ports[0].port}/rebuild'`);
  });

  it('publishes only the port of the API, and retries no rebuild', () => {
    const ingresses = resources.filter(({ kind }) => kind === 'Ingress');
    const backend = { service: { name: 'api', port: { name: 'http' } } };
    const paths = ingresses.map(({ spec }): unknown => spec.rules[0].http.paths);
    expect(paths).to.deep.equal([
      [{ path: '/', pathType: 'Prefix', backend }],
      ['/rebuild', '/get-bypass'].map((path) => ({ path, pathType: 'Exact', backend })),
    ]);
    expect(ingresses[1]?.metadata.annotations).to.deep.equal({
      'nginx.ingress.kubernetes.io/proxy-next-upstream': 'off',
      'nginx.ingress.kubernetes.io/enable-access-log': 'false',
    });
  });

  it('names a registry, whose dataset must be set', () => {
    const { registry, dataset } = readConfig(environments.base);
    expect(registry.slug).not.to.equal(readConfig({ ...environments.base, REGISTRY_SLUG: '' }).registry.slug);
    expect(dataset.isSample).to.equal(true);
    expect(read(`${BASE}/settings.env`)).to.match(/^#DATASET_URL=/m);
  });

  it('needs no kernel setting for Elasticsearch', () => {
    const { nodeSets } = find('Elasticsearch', 'elasticsearch').spec;
    expect(nodeSets[0].config).to.include({ 'node.store.allow_mmap': false });
  });

  describe('its network policies', () => {
    const NAMESPACE = 'registry-search';
    const policies = resources.filter(({ kind }) => kind === 'NetworkPolicy') as unknown as NetworkPolicy[];
    const pod = (namespace: string, labels: Labels): Endpoint => ({ namespace, labels });
    const own = (name: string) => pod(NAMESPACE, pods[name]?.metadata.labels ?? {});
    const { podTemplate } = find('Elasticsearch', 'elasticsearch').spec.nodeSets[0];
    const endpoints = {
      api: own('Deployment/api'),
      redis: own('Deployment/redis'),
      rebuild: own('CronJob/rebuild'),
      elasticsearch: pod(NAMESPACE, {
        ...podTemplate.metadata.labels,
        // The operator adds it.
        'elasticsearch.k8s.elastic.co/cluster-name': 'elasticsearch',
      }),
      stranger: pod(NAMESPACE, { 'app.kubernetes.io/name': 'stranger' }),
      controller: pod('ingress-nginx', { 'app.kubernetes.io/component': 'controller' }),
      prometheus: pod('monitoring', { 'app.kubernetes.io/name': 'prometheus' }),
      operator: pod('elastic-system', { 'control-plane': 'elastic-operator' }),
      dns: pod('kube-system', { 'k8s-app': 'kube-dns' }),
      /** A pod of another namespace that has the labels of the service. */
      impostor: pod('default', api.template.metadata.labels),
      nodeLocalDns: { address: '169.254.20.10' },
      origin: { address: '203.0.113.7' },
      originV6: { address: '2001:db8::7' },
      metadata: { address: '169.254.169.254' },
      machine: { address: '10.0.0.7' },
    } satisfies Record<string, Endpoint>;
    type Name = keyof typeof endpoints;
    const names = Object.keys(endpoints) as Name[];

    /** All connections that must be possible, by port. Every other one from or to a pod of the namespace must not be. */
    const ALLOWED: Record<string, [from: Name, to: Name][]> = {
      'TCP 3000': [
        ['controller', 'api'],
        ['rebuild', 'api'],
      ],
      'TCP 9464': [['prometheus', 'api']],
      'TCP 6379': [['api', 'redis']],
      'TCP 9200': [
        ['api', 'elasticsearch'],
        ['operator', 'elasticsearch'],
        ['elasticsearch', 'elasticsearch'],
      ],
      'TCP 9300': [['elasticsearch', 'elasticsearch']],
      'UDP 53': [
        ['api', 'dns'],
        ['api', 'nodeLocalDns'],
        ['rebuild', 'dns'],
        ['rebuild', 'nodeLocalDns'],
      ],
      'TCP 443': [
        ['api', 'origin'],
        ['api', 'originV6'],
      ],
      'TCP 80': [],
    };
    /** Pods that policies restrict in both directions, and those whose egress is open. */
    const CLOSED: Name[] = ['api', 'redis', 'rebuild'];

    for (const [port, allowed] of Object.entries(ALLOWED)) {
      it(`allow on ${port} ${allowed.map((pair) => pair.join(' → ')).join(', ') || 'nothing'}`, () => {
        const [protocol = '', number] = port.split(' ');
        const found = names.flatMap((from) =>
          names
            // Connections that no policy of this namespace concerns: between others, or out of Elasticsearch.
            .filter((to) => CLOSED.includes(from) || [...CLOSED, 'elasticsearch'].includes(to))
            .filter((to) =>
              isAllowed(policies, NAMESPACE, {
                from: endpoints[from],
                to: endpoints[to],
                port: { protocol, port: Number(number) },
              }),
            )
            .map((to) => [from, to]),
        );
        expect(found).to.have.deep.members(allowed);
      });
    }
  });

  it('mounts the certificate that NODE_EXTRA_CA_CERTS names', () => {
    const volume = pod.volumes?.find(({ secret }) => secret !== undefined);
    expect(volume?.secret?.secretName).to.equal('elasticsearch-es-http-certs-public');
    const mount = container.volumeMounts?.find(({ name }) => name === volume?.name);
    expect(literals[OF_NODE]).to.equal(`${mount?.mountPath}/ca.crt`);
  });
});
