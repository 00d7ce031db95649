import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import getPort from 'get-port';
import { Kibana } from '../../src/clients/kibana.js';
import { concurrentTests } from '../support/concurrent-tests.js';
import { datasetServer } from '../support/dataset-server.js';
import { keepSecret } from '../support/secret-scanner.js';
import { savedObjects, type SavedObject } from '../support/kibana-lens.js';
import { SpawnedCli } from '../support/spawn-cli.js';

/** Under a base path, as behind a proxy. */
const BASE = '/kibana';
const API_KEY = keepSecret('kibana-api-key-change-me');
/** Each takes a second of processor time to start; enough for two processors. */
const PROGRAMS_AT_ONCE = 3;
const NOT_READY = { status: 503, body: 'Kibana server is not ready yet' };
const level = (status: number, name: string) => ({
  status,
  body: JSON.stringify({ status: { overall: { level: name } } }),
});
const AVAILABLE = level(200, 'available');
const ALL_IMPORTED = { status: 200, body: JSON.stringify({ success: true, successCount: 9, warnings: [] }) };

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

/** A web server that follows Kibana's documentation. The last of `statuses` repeats. */
async function kibanaServer(statuses: Answer[], imported: Answer = ALL_IMPORTED) {
  const imports: Import[] = [];
  const answer = async (request: IncomingMessage): Promise<Answer> => {
    if (request.url === `${BASE}/api/status`) {
      return (statuses.length > 1 ? statuses.shift() : statuses[0]) ?? NOT_READY;
    }
    expect(request.method).to.equal('POST');
    expect(request.url).to.equal(`${BASE}/api/saved_objects/_import?overwrite=true`);
    if (request.headers['kbn-xsrf'] === undefined)
      return badRequest('Request must contain a kbn-xsrf header.');
    const [, , file] = FORM.exec(await text(request)) ?? [];
    if (file === undefined) return badRequest('Invalid file extension');
    const lines = file.trimEnd().split('\n');
    imports.push({ headers: request.headers, objects: lines.map((line) => JSON.parse(line) as SavedObject) });
    return imported;
  };
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    answer(request).then(
      ({ status, body }) => response.writeHead(status).end(body),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  };
  const server = await datasetServer(listener);
  return { url: new URL(BASE, server.url).href, imports, close: () => server.close() };
}

function badRequest(message: string): Answer {
  return { status: 400, body: JSON.stringify({ statusCode: 400, error: 'Bad Request', message }) };
}

describe('npm run kibana:setup', function () {
  this.timeout(60_000);
  const itConcurrently = concurrentTests(PROGRAMS_AT_ONCE);

  async function run(env: Record<string, string>) {
    const program = new SpawnedCli('src/cli/kibana-setup.ts', env);
    const code = await program.exit();
    const { stdout, stderr } = program;
    return { code, stdout, stderr };
  }

  /** Runs the command with such a server. */
  async function runWith(statuses: Answer[], imported?: Answer, env: Record<string, string> = {}) {
    const kibana = await kibanaServer(statuses, imported);
    try {
      return { ...(await run({ KIBANA_URL: kibana.url, ...env })), imports: kibana.imports };
    } finally {
      await kibana.close();
    }
  }

  itConcurrently(
    'waits until Kibana is available, reports what it waits for, and imports the objects unchanged',
    async () => {
      const statuses = [NOT_READY, level(503, 'unavailable'), level(200, 'unavailable'), AVAILABLE];
      const { code, stdout, stderr, imports } = await runWith(statuses);
      expect(stderr).to.equal('');
      expect(code).to.equal(0);
      const lines = stdout.trimEnd().split('\n');
      expect(lines).to.have.length(3);
      expect(lines[0]).to.match(/^Waiting: Kibana at http:\S+ reports no status yet \(503\)$/);
      expect(lines[1]).to.match(/^Waiting: Kibana at http:\S+ is unavailable$/);
      expect(lines[2]).to.equal('Kibana now has the dashboard registry-packages: 9 objects imported.');
      expect(imports).to.have.length(1);
      expect(imports[0]?.objects).to.deep.equal(savedObjects());
      expect(imports[0]?.headers).to.not.have.property('authorization');
    },
  );

  itConcurrently('accepts a degraded Kibana', async () => {
    expect((await runWith([level(200, 'degraded')])).code).to.equal(0);
  });

  itConcurrently('waits for a Kibana that does not listen yet', async () => {
    const url = `http://127.0.0.1:${await getPort()}`;
    const program = new SpawnedCli('src/cli/kibana-setup.ts', { KIBANA_URL: url });
    await program.prints(/^Waiting: Kibana does not respond at http:\S+: .*ECONNREFUSED/, 20_000);
    await program.stop();
  });

  itConcurrently('gives each registry its own objects, the same in each run', async () => {
    const env = { REGISTRY_SLUG: 'pub-dev_2', KIBANA_API_KEY: API_KEY };
    const first = await runWith([AVAILABLE], undefined, env);
    const second = await runWith([AVAILABLE], undefined, env);
    expect(first.stdout).to.contain('pub-dev_2-packages');
    expect(second.imports[0]?.objects).to.deep.equal(first.imports[0]?.objects);
    expect(first.imports[0]?.headers.authorization).to.equal(`ApiKey ${API_KEY}`);

    const objects = first.imports[0]?.objects ?? [];
    expect(JSON.stringify(objects)).to.not.contain('registry-packages');
    expect(objects.find(({ type }) => type === 'index-pattern')?.attributes['title']).to.equal(
      'pub-dev_2-packages',
    );
    const ids = objects.map(({ id }) => id);
    const idsOfDefault = savedObjects().map(({ id }) => id);
    expect(ids.filter((id) => idsOfDefault.includes(id))).to.deep.equal([]);
    for (const { references } of objects) expect(ids).to.include.members(references.map(({ id }) => id));
  });

  itConcurrently('keeps the objects of a registry with a similar slug', async () => {
    const taken = savedObjects().map(({ id }) => id);
    for (const slug of ['registry-packages', 'registry-packages-total']) {
      const { imports } = await runWith([AVAILABLE], undefined, { REGISTRY_SLUG: slug });
      const ids = imports[0]?.objects.map(({ id }) => id) ?? [];
      expect(ids).to.have.length(taken.length);
      expect(ids.filter((id) => taken.includes(id))).to.deep.equal([]);
    }
  });

  itConcurrently('names each object that Kibana rejects, and why', async () => {
    const errors = [
      {
        type: 'lens',
        id: 'registry-packages-total',
        meta: { title: 'Packages' },
        error: {
          type: 'missing_references',
          references: [{ type: 'index-pattern', id: 'registry-packages' }],
        },
      },
      {
        type: 'dashboard',
        id: 'registry-packages-dashboard',
        meta: {},
        error: { type: 'unknown', message: 'Document was saved by a newer version', statusCode: 422 },
      },
    ];
    const body = JSON.stringify({ success: false, successCount: 6, errors });
    const { code, stderr } = await runWith([AVAILABLE], { status: 200, body });
    expect(code).to.equal(1);
    expect(stderr).to.equal(
      'Kibana rejected lens registry-packages-total (missing_references: index-pattern registry-packages);' +
        ' dashboard registry-packages-dashboard (unknown: Document was saved by a newer version)\n',
    );
  });

  itConcurrently('fails if Kibana rejects the import, or something else responds to it', async () => {
    const refused = await runWith([AVAILABLE], { status: 403, body: '{"message":"Unable to bulk_create"}' });
    expect(refused.code).to.equal(1);
    expect(refused.stderr).to.equal(
      'Kibana responded to the import with 403: {"message":"Unable to bulk_create"}\n',
    );
    const other = await runWith([AVAILABLE], { status: 200, body: '<html>' });
    expect(other.code).to.equal(1);
    expect(other.stderr).to.equal('Kibana responded to the import with 200: <html>\n');
  });

  itConcurrently('fails at once if the key is rejected', async () => {
    const { code, stderr } = await runWith([{ status: 401, body: '{}' }], undefined, {
      KIBANA_API_KEY: API_KEY,
    });
    expect(code).to.equal(1);
    expect(stderr).to.equal('Kibana responded with 401: KIBANA_API_KEY is missing, wrong or lacks rights\n');
  });

  itConcurrently('gives up after its timeout', async () => {
    const kibana = await kibanaServer([level(503, 'critical')]);
    const { url } = kibana;
    const waiting = new Kibana({ url, apiKey: undefined }).ready(() => undefined, 1500);
    const failure = await waiting.catch((error: unknown) => error);
    await kibana.close();
    expect(failure).to.have.property('message', `gave up after 2 seconds: Kibana at ${url} is critical`);
  });

  itConcurrently('names a malformed variable', async () => {
    for (const [name, value] of [
      ['KIBANA_URL', 'localhost:5601'],
      ['REGISTRY_SLUG', 'Debian'],
    ] as const) {
      const { code, stderr } = await run({ [name]: value });
      expect(code).to.equal(2);
      expect(stderr).to.match(new RegExp(`^${name} must [^\\n]+\\n$`));
    }
  });
});
