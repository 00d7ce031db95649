import { randomBytes, randomInt } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../dev/free-port.js';
import { run } from '../../dev/run.js';
import { newFolder } from './run-folder.js';
import { waitFor } from './wait-for.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** A command that takes longer is considered stuck. In milliseconds. */
const TIMEOUT_MS = 8 * 60_000;
/** Pause between two looks at the containers: each starts two processes. In milliseconds. */
const POLL_MS = 500;

/** The services that publish a port, and the variable with the address of each. */
const PUBLISHERS = {
  proxy: 'API_ADDRESS',
  'sibling-proxy': 'SIBLING_ADDRESS',
  prometheus: 'PROMETHEUS_ADDRESS',
} as const;
type Publisher = keyof typeof PUBLISHERS;

/** The part of the output of `docker inspect` that tests read. */
interface Container {
  Id: string;
  State: { Health?: { Status: string } };
  Config: { Labels: Record<string, string> };
  HostConfig: { PortBindings: Record<string, { HostIp: string; HostPort: string }[]> | null };
}

/** The containers of docker-compose.yml, as a separate project with the settings of its examples. */
export class Compose {
  /** Differs from the subnet of a project that a developer runs on the same machine. */
  readonly #subnet = `10.${randomInt(100, 250)}.${randomInt(256)}.0/24`;
  readonly #project = `test-${randomBytes(4).toString('hex')}`;
  #files = ['docker-compose.yml'];

  private constructor(
    private readonly command: readonly [string, ...string[]],
    private readonly folder: string,
    private readonly addresses: Record<Publisher, string>,
  ) {}

  /** @throws if Docker Compose is not installed. */
  static async create(): Promise<Compose> {
    const plugin = await run('docker', ['compose', 'version']).catch(() => undefined);
    const command = plugin === undefined ? (['docker-compose'] as const) : (['docker', 'compose'] as const);
    const address = async () => `127.0.0.1:${await freePort()}`;
    const addresses = {
      proxy: await address(),
      'sibling-proxy': await address(),
      prometheus: await address(),
    };
    return new Compose([...command], newFolder(), addresses);
  }

  /** Where a service is published. */
  url(service: Publisher = 'proxy'): string {
    return `http://${this.addresses[service]}`;
  }

  /**
   * Writes the env file: the given examples of `deploy`, concatenated as docs/deployment.md says, and the settings
   * that keep this project apart from one that a developer runs on the same machine.
   * @param files in addition to docker-compose.yml.
   */
  async configure(examples: string[], settings: Record<string, string>, files: string[] = []): Promise<void> {
    this.#files = ['docker-compose.yml', ...files];
    const texts = await Promise.all(examples.map((name) => readFile(join(ROOT, 'deploy', name), 'utf8')));
    const own = {
      SERVICE_IMAGE: 'package-registry-search:test',
      FRONT_SUBNET: this.#subnet,
      SIBLING_ENV: 'deploy/sibling.env',
      ...settings,
    };
    const publishers = Object.entries(PUBLISHERS) as [Publisher, string][];
    const lines = [
      ...Object.entries(own).map(([name, value]) => `${name}=${value}`),
      ...publishers.map(([service, variable]) => `${variable}=${this.addresses[service]}`),
    ];
    await writeFile(this.#envFile, [...texts, ...lines, ''].join('\n'));
  }

  /** Runs Compose with `args`. @returns its output. */
  async run(...args: string[]): Promise<string> {
    const [program, ...first] = this.command;
    const files = this.#files.flatMap((file) => ['--file', file]);
    const options = ['--project-name', this.#project, '--env-file', this.#envFile, ...files];
    const { PATH, HOME, DOCKER_HOST } = process.env;
    // Without the settings of the developer who runs the tests. With BuildKit, Compose 1.29 would delegate the build to
    // a Docker plugin that may not be installed.
    const env: NodeJS.ProcessEnv = { PATH, HOME, DOCKER_HOST, COMPOSE_DOCKER_CLI_BUILD: '0' };
    return run(program, [...first, ...options, ...args], { cwd: ROOT, timeoutMs: TIMEOUT_MS, env });
  }

  /** The containers of a service, or all containers. */
  async containers(service?: string): Promise<Container[]> {
    const labels = [`project=${this.#project}`, ...(service === undefined ? [] : [`service=${service}`])];
    const filters = labels.flatMap((label) => ['--filter', `label=com.docker.compose.${label}`]);
    const ids = (await run('docker', ['ps', '--all', '--quiet', ...filters])).split('\n').filter(Boolean);
    if (ids.length === 0) return [];
    return JSON.parse(await run('docker', ['inspect', ...ids])) as Container[];
  }

  /** Waits until `count` containers of a service are healthy. */
  async healthy(service: string, count: number): Promise<void> {
    const areHealthy = async () => {
      const containers = await this.containers(service);
      return containers.filter(({ State }) => State.Health?.Status === 'healthy').length === count;
    };
    await waitFor(areHealthy, `${count} healthy containers of ${service}`, 300_000, POLL_MS);
  }

  /** Removes containers, networks and volumes. */
  async down(): Promise<void> {
    await this.run('down', '--volumes', '--remove-orphans', '--timeout', '20');
  }

  get #envFile(): string {
    return join(this.folder, 'env');
  }
}
