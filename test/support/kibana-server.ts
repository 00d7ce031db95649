import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { withNodes } from './node-servers.js';
import type { SavedObject } from './kibana-lens.js';

/** Under a base path, as behind a proxy. */
const BASE = '/kibana';

/** A form with one file whose name has the extension that Kibana requires. */
const FORM =
  /^--(\S+)\r\nContent-Disposition: form-data; name="file"; filename="[^"]+\.ndjson"\r\n(?:\S.*\r\n)*\r\n([^]*)\r\n--\1--\r\n$/;

interface Answer {
  status: number;
  body: string;
}

/** An import request. */
interface Import {
  headers: IncomingHttpHeaders;
  objects: SavedObject[];
}

/** Kibana while it starts. */
export const NOT_READY: Answer = { status: 503, body: 'Kibana server is not ready yet' };
const ALL_IMPORTED = { status: 200, body: JSON.stringify({ success: true, successCount: 9, warnings: [] }) };

export function level(status: number, name: string): Answer {
  return { status, body: JSON.stringify({ status: { overall: { level: name } } }) };
}

/**
 * Calls `use` with the address of a web server that follows Kibana's documentation, and the imports that it has received.
 * @param statuses the responses to status requests; the last one repeats.
 */
export function withKibana<T>(
  statuses: readonly Answer[],
  imported: Answer | undefined,
  use: (url: string, imports: readonly Import[]) => Promise<T>,
): Promise<T> {
  const [...left] = statuses;
  const imports: Import[] = [];
  const answer = ({ method, url, headers }: IncomingMessage, body: string): Answer => {
    if (url === `${BASE}/api/status`) return (left.length > 1 ? left.shift() : left[0]) ?? NOT_READY;
    if (method !== 'POST' || url !== `${BASE}/api/saved_objects/_import?overwrite=true`)
      return { status: 404, body: `${method} ${url}` };
    const [, , file] = FORM.exec(body) ?? [];
    if (headers['kbn-xsrf'] === undefined || file === undefined)
      return { status: 400, body: '{"message":"kbn-xsrf or the file is missing"}' };
    const lines = file.trimEnd().split('\n');
    imports.push({ headers, objects: lines.map((line) => JSON.parse(line) as SavedObject) });
    return imported ?? ALL_IMPORTED;
  };
  return withNodes(
    [
      (request, response) =>
        void text(request)
          .then((body) => answer(request, body))
          .then(({ status, body }) => response.writeHead(status).end(body)),
    ],
    ([url = '']) => use(url + BASE, imports),
  );
}
