import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import { startLocalService } from '../../dev/local-service.js';
import { run } from '../../dev/run.js';
import { SetupError, type Service } from '../../dev/service.js';
import { startProgram, statusOf } from './program.js';
import { newFolder } from './run-folder.js';

/** The folder of its configuration and of the alert rules. */
export const DEPLOY = new URL('../../deploy/', import.meta.url);

/** Instead of that of deploy/prometheus.yml, so that tests do not wait. */
const INTERVAL = '1s';

const START_TIMEOUT_MS = 30_000;

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
export function usePrometheus(metricsUrls: () => readonly string[]) {
  let folder: string;
  let running: Service | undefined;
  const launch = (port: number) =>
    startProgram(
      [
        'prometheus',
        `--config.file=${join(folder, 'prometheus.yml')}`,
        `--storage.tsdb.path=${join(folder, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      {
        name: 'Prometheus',
        cwd: folder,
        logFile: join(folder, 'prometheus.log'),
        timeoutMs: START_TIMEOUT_MS,
        isReady: async () => (await statusOf(`http://127.0.0.1:${port}/-/ready`)) === 200,
      },
    );
  before(async function () {
    this.timeout(2 * START_TIMEOUT_MS);
    folder = newFolder();
    await runInstalled('prometheus', ['--version']);
    await writeFile(join(folder, 'prometheus.yml'), await configure(metricsUrls()));
    const description = 'Prometheus';
    running = await startLocalService({ description, scheme: 'http', usualPort: undefined, launch });
  });
  after(() => running?.stop());

  /** Reads `/api/v1/<path>`. @returns its `data`. @throws {Error} with the message of Prometheus. */
  async function get(path: string): Promise<unknown> {
    const response = await fetch(`${running?.url}/api/v1/${path}`);
    const { data, error } = (await response.json()) as { data?: unknown; error?: string };
    if (error !== undefined) throw new Error(`Prometheus: ${error}`);
    return data;
  }

  /** Evaluates an expression now. @returns the values. @throws {Error} if it is invalid, or no instant vector. */
  async function query(expr: string): Promise<number[]> {
    const { resultType, result } = (await get(`query?query=${encodeURIComponent(expr)}`)) as {
      resultType: string;
      result: { value: [time: number, value: string] }[];
    };
    if (resultType !== 'vector') throw new Error(`the result is a ${resultType}, not a vector`);
    return result.map(({ value: [, value] }) => Number(value));
  }

  return { get, query };
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
