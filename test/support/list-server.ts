import type { IncomingHttpHeaders, RequestListener, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import type { JsonPaths } from '../../src/config/json-paths.js';
import { downloadList, type PackageList } from '../../src/rebuild/steps/download.js';
import { datasetServer, type DatasetServer } from './dataset-server.js';
import { naiveCsv } from './naive-csv.js';

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

/** A package as the CSV of a list has it; columns that are absent are missing. */
export type Row = Record<string, string>;

type Options = Partial<Parameters<typeof downloadList>[2]> & { paths?: JsonPaths };

/**
 * Converts a list.
 * @returns the rows, or the reason of the failure; `unchanged` if the origin says so.
 */
export async function convert(
  format: PackageList['format'],
  urls: string | readonly string[],
  options: Options = {},
): Promise<Row[] | string> {
  const { paths = { items: [] }, ...others } = options;
  const list = { format, paths, urls: [urls].flat() as [string] };
  try {
    const snapshot = await downloadList(list, new AbortController().signal, {
      timeoutMs: 60_000,
      pauseMs: 5,
      ...others,
    });
    if (snapshot === undefined) return 'unchanged';
    const csv = await text(snapshot.read());
    await snapshot.close();
    return rowsOf(csv);
  } catch (error) {
    const { name, message } = error as Error;
    if (name !== 'DatasetError') throw error;
    return message;
  }
}

/** The rows of a CSV, by their columns. */
function rowsOf(csv: string): Row[] {
  const [header, ...records] = naiveCsv(csv).map(({ fields = [] }) => fields);
  return records.map((fields) => {
    const row: Row = {};
    header?.forEach((column, i) => {
      if (column !== '') row[column] = fields[i] ?? '';
    });
    return row;
  });
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
