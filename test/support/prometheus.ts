import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import { startLocalService } from '../../src/dev/local-service.js';
import { ManagedProcess } from '../../src/dev/managed-process.js';
import { run } from '../../src/dev/run.js';
import { SetupError } from '../../src/dev/service.js';

/** The folder of its configuration and of the alert rules. */
export const DEPLOY = new URL('../../deploy/', import.meta.url);

/** Instead of that of deploy/prometheus.yml, so that tests do not wait. */
const INTERVAL = '1s';

const START_TIMEOUT_MS = 30_000;

/** One element of an instant vector. */
export interface QueryResult {
  metric: Record<string, string>;
  value: number;
}

/** A real Prometheus that scrapes replicas every second. */
export interface Prometheus {
  /** Such as `http://127.0.0.1:9090`. */
  readonly url: string;
  /** Evaluates an expression now. @throws {Error} if it is invalid, or no instant vector. */
  query(expr: string): Promise<QueryResult[]>;
  /** Reads `/api/v1/<path>`. @returns its `data`. @throws {Error} with the message of Prometheus. */
  get(path: string): Promise<unknown>;
}

/** The fields of deploy/prometheus.yml that are replaced. */
interface Configuration {
  global: object;
  rule_files: string[];
  scrape_configs: object[];
}

/**
 * Runs a program of Debian's package `prometheus` to its end, in the folder `deploy`, and returns its output.
 * @throws {SetupError} if it is not installed, {Error} with its error output if it fails.
 */
export async function runInstalled(program: 'prometheus' | 'promtool', args: string[]): Promise<string> {
  try {
    return await run(program, args, { cwd: fileURLToPath(DEPLOY) });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new SetupError(
      `${program} is not on the PATH: apt-get install --no-install-recommends prometheus, version 2.42 or newer`,
    );
  }
}

/**
 * Starts the `prometheus` on the PATH for the calling suite, with deploy/prometheus.yml and its rules, and stops it
 * at the end of the suite.
 * @param metricsUrls where the replicas serve `/metrics`; read when Prometheus starts.
 * @returns is available only within the tests of the suite.
 */
export function usePrometheus(metricsUrls: () => readonly string[]): Prometheus {
  let running: (Prometheus & { stop(): Promise<void> }) | undefined;
  before(async function () {
    this.timeout(2 * START_TIMEOUT_MS);
    running = await startPrometheus(metricsUrls());
  });
  after(async () => {
    await running?.stop();
  });
  const started = () => {
    if (running === undefined) throw new Error('Prometheus is available only within the tests of a suite');
    return running;
  };
  return {
    get url() {
      return started().url;
    },
    query: (expr) => started().query(expr),
    get: (path) => started().get(path),
  };
}

async function startPrometheus(
  metricsUrls: readonly string[],
): Promise<Prometheus & { stop(): Promise<void> }> {
  await runInstalled('prometheus', ['--version']);
  const folder = await mkdtemp(join(tmpdir(), 'package-registry-search-prometheus-'));
  const remove = () => rm(folder, { recursive: true, force: true });
  const configFile = join(folder, 'prometheus.yml');
  const launch = async (port: number) => {
    const command = [
      'prometheus',
      `--config.file=${configFile}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ];
    const program = new ManagedProcess(command, {
      cwd: folder,
      env: { PATH: process.env['PATH'] },
      runAs: undefined,
      logFile: join(folder, 'prometheus.log'),
    });
    const { signal } = new AbortController();
    await program.waitUntil(() => isReady(port), 'Prometheus', START_TIMEOUT_MS, signal);
    return program;
  };
  try {
    await writeFile(configFile, await configure(metricsUrls));
    const service = await startLocalService({
      description: 'Prometheus',
      scheme: 'http',
      usualPort: undefined,
      launch,
    });
    return {
      url: service.url,
      query: async (expr) => vectorOf(await get(service.url, `query?query=${encodeURIComponent(expr)}`)),
      get: (path) => get(service.url, path),
      stop: async () => {
        await service.stop();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** deploy/prometheus.yml with these targets, and with short intervals. */
async function configure(metricsUrls: readonly string[]): Promise<string> {
  const deployed = parse(await readFile(new URL('prometheus.yml', DEPLOY), 'utf8')) as Configuration;
  const targets = metricsUrls.map((url) => new URL(url).host);
  return stringify({
    global: { ...deployed.global, scrape_interval: INTERVAL, evaluation_interval: INTERVAL },
    rule_files: deployed.rule_files.map((file) => fileURLToPath(new URL(file, DEPLOY))),
    scrape_configs: deployed.scrape_configs.map((job) => ({
      ...job,
      dns_sd_configs: [],
      static_configs: [{ targets }],
    })),
  });
}

async function isReady(port: number): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${port}/-/ready`).catch(() => undefined);
  await response?.body?.cancel();
  return response?.status === 200;
}

async function get(url: string, path: string): Promise<unknown> {
  const response = await fetch(`${url}/api/v1/${path}`);
  const { data, error } = (await response.json()) as { data?: unknown; error?: string };
  if (error !== undefined) throw new Error(`Prometheus: ${error}`);
  return data;
}

function vectorOf(data: unknown): QueryResult[] {
  const { resultType, result } = data as {
    resultType: string;
    result: { metric: Record<string, string>; value: [time: number, value: string] }[];
  };
  if (resultType !== 'vector') throw new Error(`the result is a ${resultType}, not a vector`);
  // Prometheus writes `+Inf`, JavaScript `+Infinity`.
  return result.map(({ metric, value: [, value] }) => ({
    metric,
    value: Number(value.replace('Inf', 'Infinity')),
  }));
}
