import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { median } from '../test/fixtures/statistics.js';
import { BaselineClient } from './measure.js';
import { userTime } from './processor-time.js';
import type { ServerProcess } from './processes.js';

const TURNS = 5;
/** Turns that are not measured, so that the code is compiled. */
const WARM_UP_TURNS = 2;
/** Duration of a turn with wrk. */
const SECONDS = 3;
const CONNECTIONS = 16;
/** Of each turn with a client in JavaScript. */
const REQUESTS_PER_TURN = 2000;

interface BenchRequest {
  path: string;
  headers?: Record<string, string>;
}

/** Repeats one request for a whole turn. */
export function repeated(request: BenchRequest): BenchRequest[] {
  return Array<BenchRequest>(REQUESTS_PER_TURN).fill(request);
}

/** A server and the requests of each turn. */
export interface Contender {
  server: ServerProcess;
  requests: readonly BenchRequest[];
  /** Expected of every response; 200 by default. */
  status?: number;
}

/** User time per request, in milliseconds. */
export interface Cost {
  subject: number;
  baseline: number;
}

async function sendAll(
  client: BaselineClient,
  requests: readonly BenchRequest[],
  status: number,
): Promise<void> {
  const left = requests.values();
  const send = async () => {
    for (const { path, headers = {} } of left) await client.get(path, { headers, status });
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, send));
}

/**
 * Measures the user time per request of two servers in turns, under as many requests as wrk can send: a client in JavaScript
 * would be the slower side, and most batches of the service would have one request.
 * @throws {Error} if one of the first responses has another status than expected, or any other one none of 2xx or 3xx.
 */
export async function costPerRequest(subject: Contender, baseline: Contender): Promise<Cost> {
  const folder = await mkdtemp(join(tmpdir(), 'cost-'));
  const costs: [number[], number[]] = [[], []];
  try {
    const sides = [subject, baseline] as const;
    for (const { server, requests, status } of sides) {
      const client = new BaselineClient(server.url, CONNECTIONS);
      await sendAll(client, requests.slice(0, CONNECTIONS), status ?? 200);
      await client.close();
    }
    const scripts = await Promise.all(sides.map((side, i) => writeScript(join(folder, `${i}.lua`), side)));
    for (let turn = -WARM_UP_TURNS; turn < TURNS; turn++) {
      for (const i of turn % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
        const { url, pid } = sides[i].server;
        const before = await userTime(pid);
        const requests = await wrk(url, scripts[i] as string);
        if (turn >= 0) costs[i].push(((await userTime(pid)) - before) / requests);
      }
    }
  } finally {
    await rm(folder, { recursive: true });
  }
  return { subject: median(costs[0]), baseline: median(costs[1]) };
}

/** Writes a script for wrk that repeats the requests of a contender. @returns its path. */
async function writeScript(path: string, { requests }: Contender): Promise<string> {
  const calls = requests.map((request) => {
    const headers = Object.entries(request.headers ?? {}).map(
      ([name, value]) => `[${quoted(name)}]=${quoted(value)}`,
    );
    return `wrk.format("GET", ${quoted(request.path)}, {${headers.join(',')}})`;
  });
  const steps = calls.map((call) => `r[#r+1] = ${call}`).join('\n');
  await writeFile(
    path,
    `local r, i = {}, 0\nfunction init()\n${steps}\nend\nfunction request()\ni = i % #r + 1\nreturn r[i]\nend\n`,
  );
  return path;
}

/** A text as a literal of Lua. */
function quoted(text: string): string {
  return `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}

/** Runs wrk. @returns the number of responses. */
async function wrk(url: string, script: string): Promise<number> {
  const args = ['-t1', `-c${CONNECTIONS}`, `-d${SECONDS}s`, '-s', script, url];
  const { stdout } = await promisify(execFile)('wrk', args);
  const [, requests] = /(\d+) requests in/.exec(stdout) ?? [];
  if (requests === undefined || /Non-2xx|Socket errors/.test(stdout)) throw new Error(stdout);
  return Number(requests);
}
