import type { IncomingHttpHeaders, RequestListener, ServerResponse } from 'node:http';
import { pino } from 'pino';
import { defaultNameRule, type DatasetFormat } from '../../src/config/dataset-format.js';
import type { JsonPaths } from '../../src/config/json-paths.js';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
import { BadRows } from '../../src/lists/fetch/dataset-error.js';
import { checkPackages } from '../../src/lists/checked-packages.js';
import { downloadDataset, type DownloadedDataset } from '../../src/lists/download.js';
import type { NameRule } from '../../src/util/name-rule.js';
import { datasetServer, type DatasetServer } from './dataset-server.js';

/** A document of a list: its body, or everything about its response. */
export type Body = string | Buffer;
export type Answer = Body | undefined | ((response: ServerResponse) => void);

/** A web server for lists, on loopback, that records what it is asked for. */
export interface ListServer extends DatasetServer {
  /** Without a slash at the end. */
  origin: string;
  requests: { url: string; headers: IncomingHttpHeaders }[];
}

/** @param answer of a request; undefined is 404. The address has any origin. */
export async function listServer(
  answer: (url: URL, headers: IncomingHttpHeaders) => Answer,
): Promise<ListServer> {
  const requests: ListServer['requests'] = [];
  const listener: RequestListener = ({ url = '', headers }, response) => {
    requests.push({ url, headers });
    const given = answer(new URL(url, 'http://any.example'), headers);
    if (typeof given === 'function') given(response);
    else if (given === undefined) response.writeHead(404).end();
    else response.end(given);
  };
  const server = await datasetServer(listener);
  return { ...server, origin: new URL(server.url).origin, requests };
}

/** Answers each request by the next of these, and all others by the last one. */
export function inTurn(...answers: ((url: URL) => Answer)[]): (url: URL) => Answer {
  let asked = 0;
  return (url) => answers[Math.min(asked++, answers.length - 1)]?.(url);
}

export const withStatus =
  (status: number, headers: Record<string, string> = {}, body = '') =>
  (): Answer =>
  (response) =>
    response.writeHead(status, headers).end(body);

/** Disconnects in the middle. */
export const cutOff = (body: Body) => (): Answer => (response) => {
  response.writeHead(200, { 'Content-Length': Buffer.byteLength(body) });
  response.write(body.slice(0, Math.floor(body.length / 2)), () => response.destroy());
};

/** What a login page looks like to a program: 200 and HTML. */
export const LOGIN_PAGE = `<!DOCTYPE html>
<html lang="en"><head><title>Sign in to continue</title></head>
<body><h1>Sign in</h1><form action="/session" method="post"><input name="user"> <input name="password" type="password"></form>
<a href="/help">Forgot your password?</a></body></html>
`;

const COLUMNS = ['name', 'package_no', 'version', 'url', 'description', 'weight'] as const;

/** A package of a list. A column that is the default in all packages is left out. */
export type Row = Record<string, string>;

const TEMPLATE = 'https://registry.example/{name}';
const fromTemplate = (name: string) => TEMPLATE.replace('{name}', () => encodeURIComponent(name));

/** Packages that may be anywhere in the options of a download. */
export type ListOptions = Partial<Parameters<typeof downloadDataset>[2]> & {
  paths?: JsonPaths;
  authorization?: string;
  timeoutSeconds?: number;
  maxBadRows?: number;
  template?: string | undefined;
  nameRule?: NameRule;
};

/** Downloads a list. */
export function downloadList(
  format: DatasetFormat,
  urls: string | readonly string[],
  options: ListOptions = {},
  signal = new AbortController().signal,
): Promise<DownloadedDataset | undefined> {
  const {
    paths = { items: [] },
    authorization,
    timeoutSeconds = 60,
    maxBadRows = 0,
    nameRule = defaultNameRule(format),
    ...others
  } = options;
  const config = {
    format,
    urls: [urls].flat() as [string],
    authorization,
    jsonPaths: paths,
    isSample: false,
    packageUrlTemplate: 'template' in options ? options.template : TEMPLATE,
    maxBadRows,
    nameRule,
    downloadTimeoutSeconds: timeoutSeconds,
  };
  const badRows = new BadRows(maxBadRows, pino({ level: 'silent' }));
  return downloadDataset(config, signal, { badRows, pauseMs: 1, ...others });
}

/**
 * Reads a list, and checks its packages.
 * @param skipped is filled with the bad rows that were skipped.
 * @returns the rows, or the reason of the failure; `unchanged` if the origin says so.
 */
export async function convert(
  format: DatasetFormat,
  urls: string | readonly string[],
  options: ListOptions = {},
  skipped: string[] = [],
): Promise<Row[] | string> {
  const badRows = new BadRows(options.maxBadRows ?? 0, pino({ level: 'silent' }));
  try {
    const snapshot = await downloadList(format, urls, { badRows, ...options });
    if (snapshot === undefined) return 'unchanged';
    const { packages } = snapshot;
    try {
      const { read } = await checkPackages(packages, { badRows, signal: new AbortController().signal });
      skipped.push(...badRows.skipped.first);
      const entries: PackageEntry[] = [];
      for await (const batch of read()) entries.push(...batch);
      const rows = entries.map(({ no, name, version, url, description = '', weight }) => ({
        name,
        package_no: packages.check.isNumbered ? String(no) : '',
        version: version === 'latest' ? '' : version,
        url: url === fromTemplate(name) ? '' : url,
        description,
        weight: weight === undefined ? '' : String(weight),
      }));
      const columns = COLUMNS.filter((column) => rows.some((row) => row[column] !== ''));
      return rows.map((row) => Object.fromEntries(columns.map((column) => [column, row[column]])));
    } finally {
      await packages.close();
    }
  } catch (error) {
    const { name, message } = error as Error;
    if (name !== 'DatasetError') throw error;
    return message;
  }
}

/** Starts servers for the tests of a suite, and stops them. */
export function useListServer(): (...answer: Parameters<typeof listServer>) => Promise<ListServer> {
  const servers: ListServer[] = [];
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.close();
  });
  return async (answer) => {
    const server = await listServer(answer);
    servers.push(server);
    return server;
  };
}
