import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import type { Client } from '@modelcontextprotocol/client';
import { expect } from 'chai';
import getPort from 'get-port';
import { packagesNamed } from '../support/datasets.js';
import { MCP_PROGRAM, PROTOCOLS, startMcp, textOf } from '../support/mcp-client.js';
import { scrape } from '../support/metrics.js';
import { useProxiedService } from '../support/proxied-service.js';
import { UNCACHED } from '../support/background-reader.js';
import { useReplicaStarter } from '../support/replica-starter.js';
import { runCommand } from '../support/spawn-cli.js';
import { BYPASS_SECRET, useService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

const NAMES = Array.from({ length: 90 }, (_, i) => `package-number-${i}`);
const AWKWARD = ['@scope/name', 'c++', 'a&name=b', '日本語', 'x'.repeat(100), 'y'.repeat(300)];
const SPELLINGS = ['redis-py', 'redis_py', 'redispi'];
const PACKAGES = packagesNamed([...NAMES, ...AWKWARD, ...SPELLINGS]);
const entryOf = (wanted: string) => {
  const found = PACKAGES.find(({ name }) => name === wanted);
  return found && { name: found.name, version: found.version, url: found.url };
};

const callOf = (client: Client, tool: string) => (args: Record<string, unknown>, signal?: AbortSignal) =>
  client.callTool({ name: tool, arguments: args }, signal === undefined ? {} : { signal });

describe('The MCP server', function () {
  this.timeout(60_000);
  const suite = useProxiedService(() => PACKAGES, {
    RATE_LIMIT_POINTS: '10000',
    RATE_LIMIT_WINDOW_SECONDS: '86400',
    METRICS_PORT: '0',
    PURL_TYPE: 'npm',
    ...UNCACHED,
  });
  let client: Client;
  before(async () => {
    client = await startMcp(suite.service.url);
  });
  after(() => client.close());

  const check = async (args: Record<string, unknown>) => {
    const result = await callOf(client, 'check_packages')(args);
    expect(result.isError, textOf(result)).not.to.equal(true);
    expect(JSON.parse(textOf(result))).to.deep.equal(result.structuredContent);
    return result.structuredContent as { results: { name: string; status: string }[] };
  };

  /** Requests and points since the start, of all paths that are limited. */
  async function used() {
    const metrics = await scrape(suite.service.server.metricsUrl);
    const paths = ['/stats', '/lookup', '/similar', '/search'];
    const counts = paths.map((route) => metrics.sum('http_request_duration_seconds_count', { route }) ?? 0);
    const { limit } = (await suite.service.get('/debug-ip')).body;
    return { requests: counts.reduce((a, b) => a + b), points: limit.limit - limit.remaining };
  }

  for (const mode of PROTOCOLS)
    it(`responds by the protocol ${JSON.stringify(mode)}`, async () => {
      const other = await startMcp(suite.service.url, { mode });
      expect((await other.listTools()).tools).to.deep.equal((await client.listTools()).tools);
      const found = await callOf(other, 'search_packages')({ query: 'edis', limit: 1 });
      const results = [{ ...entryOf('redis-py'), rank: 2 }];
      expect(found.structuredContent).to.deep.include({ results, truncated: true });
      await other.close();
    });

  it('has three tools, described in at most 4,000 characters', async () => {
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).to.deep.equal([
      'check_packages',
      'search_packages',
      'similar_packages',
    ]);
    for (const { outputSchema, annotations } of tools) {
      expect(outputSchema?.['required']).to.include.members(['registry', 'taken_at', 'note', 'results']);
      expect(annotations).to.include({ readOnlyHint: true });
    }
    expect(JSON.stringify(tools).length).to.be.at.most(4000);
  });

  const alike = (...names: [name: string, distance: number][]) =>
    names.map(([name, distance]) => ({ ...entryOf(name), distance }));

  it('says from which snapshot of which registry its results are', async () => {
    const { taken_at } = (await suite.service.get('/stats')).body;
    const { structuredContent } = await callOf(client, 'similar_packages')({ name: 'redispy' });
    expect(structuredContent).to.deep.equal({
      registry: suite.service.slug,
      source: 'registry.example',
      taken_at,
      note: 'This is a snapshot: a newer package may be missing.',
      results: alike(['redis-py', 0], ['redis_py', 0], ['redispi', 1]),
      truncated: false,
    });
  });

  it('finds names that exist', async () => {
    const names = [...AWKWARD, 'redis-py'];
    const { results } = await check({ names: [...AWKWARD, ' redis-py '] });
    expect(results).to.deep.equal(names.map((name) => ({ name, status: 'exists', package: entryOf(name) })));
  });

  it('compares names that do not exist with look-alikes', async () => {
    const names = ['Redis.Py', 'redis-pyy', 'unheard-of', 'unheard-of', 'z'.repeat(101)];
    const { results } = await check({ names });
    const reason = 'names of over 100 characters are not compared';
    expect(results).to.deep.equal([
      {
        name: 'Redis.Py',
        status: 'exists_as',
        package: entryOf('redis-py'),
        look_alikes: alike(['redis_py', 0], ['redispi', 1]),
      },
      {
        name: 'redis-pyy',
        status: 'missing',
        look_alikes: alike(['redis-py', 1], ['redis_py', 1], ['redispi', 2]),
      },
      { name: 'unheard-of', status: 'missing', look_alikes: [] },
      { name: 'unheard-of', status: 'missing', look_alikes: [] },
      { name: 'z'.repeat(101), status: 'missing', reason },
    ]);
  });

  it('has a result with a reason for each invalid name', async () => {
    const tooLong = 'the name has more than 512 bytes';
    const nameless = 'this is not a name: ask for the name alone, without version, address or command';
    const invalid = {
      '': 'the name is empty',
      ['a'.repeat(513)]: tooLong,
      ['語'.repeat(171)]: tooLong,
      'git+https://registry.example/a': nameless,
      'npm i redis-py': nameless,
    };
    const { results } = await check({ names: [...Object.keys(invalid), 'redis-py', 'redis-py'] });
    const package_ = { name: 'redis-py', status: 'exists', package: entryOf('redis-py') };
    expect(results).to.deep.equal([
      ...Object.entries(invalid).map(([name, reason]) => ({ name, status: 'invalid', reason })),
      package_,
      package_,
    ]);
  });

  it('refuses package URLs of another registry', async () => {
    const refused = await callOf(client, 'check_packages')({ names: ['pkg:npm/exact', 'pkg:pypi/exact'] });
    expect(refused.isError).to.equal(true);
    expect(textOf(refused)).to.include('purl 2 of 2 must be a package URL of this registry: pkg:npm/<name>');
  });

  it('takes lists, numbers and booleans as clients send them', async () => {
    const { results } = await check({ names: '["redis-py", "redispi"]', compare_existing: 'false' });
    expect(results.map(({ name, status }) => `${name} ${status}`)).to.deep.equal([
      'redis-py exists',
      'redispi exists',
    ]);
    const found = await callOf(client, 'search_packages')({ query: 'package', limit: ' 2 ' });
    expect((found.structuredContent as { results: unknown[] }).results).to.have.length(2);
    const { isError } = await callOf(client, 'similar_packages')({ name: 'redis', limit: 'all' });
    expect(isError).to.equal(true);
  });

  it('compares no existing names without weights', async () => {
    const { results } = await check({ names: ['redis-py'], compare_existing: 'true' });
    expect(results).to.deep.equal([{ name: 'redis-py', status: 'exists', package: entryOf('redis-py') }]);
  });

  it('checks a hundred names with 12 requests that cost 41 points', async () => {
    const missing = Array.from({ length: 10 }, (_, i) => `unknown-name-${i}-${'x'.repeat(40)}`);
    const before = await used();
    const { results } = await check({ names: [...NAMES, ...missing] });
    const after = await used();
    expect({
      requests: after.requests - before.requests,
      points: after.points - before.points,
    }).to.deep.equal({ requests: 12, points: 41 });
    const counted = (status: string) => results.filter((result) => result.status === status).length;
    expect([counted('exists'), counted('missing')]).to.deep.equal([90, 10]);
    const { results: more } = await check({ names: [...missing, 'one-more'] });
    expect(more.at(-1)).to.deep.equal({ name: 'one-more', status: 'not_checked' });
  });

  it('checks names that are too long for one request', async () => {
    const names = Array.from({ length: 100 }, (_, i) => `${'語'.repeat(60)}${i}`);
    const { results } = await check({ names });
    expect(results.map(({ name }) => name)).to.deep.equal(names);
  });

  it('searches by words', async () => {
    const found = await callOf(client, 'search_packages')({ query: 'py redis', match: 'words' });
    expect(found.structuredContent).to.deep.include({
      results: ['redis-py', 'redis_py'].map((name) => ({ ...entryOf(name), rank: 2 })),
    });
  });

  it('reports invalid arguments as errors of the tool', async () => {
    for (const names of [[], Array(101).fill('a'), '[]', 1]) {
      const result = await callOf(client, 'check_packages')({ names });
      expect(result.isError).to.equal(true);
      expect(textOf(result)).to.include('names');
    }
    const short = await callOf(client, 'search_packages')({ query: 'a' });
    expect([short.isError, textOf(short)]).to.deep.equal([
      true,
      'invalid_parameter: q must have 2 to 100 characters',
    ]);
  });

  it('stops the requests of a call that the client cancels', async () => {
    const hold = suite.proxy.hold('before', (_method, _path, body) => body.includes('fuzzy'));
    const controller = new AbortController();
    const before = await used();
    const call = callOf(client, 'check_packages')(
      { names: ['cancelled-1', 'cancelled-2', 'cancelled-3'] },
      controller.signal,
    );
    const outcome = call.then(() => 'a result', String);
    await hold.arrived;
    controller.abort('no longer needed');
    expect(await outcome).to.include('no longer needed');
    hold.release();
    // The next call is answered after everything that the cancelled one could have sent before it.
    await callOf(client, 'search_packages')({ query: 'red' });
    await waitFor(async () => (await used()).requests >= before.requests + 5, 'the requests to be counted');
    expect((await used()).requests - before.requests).to.equal(5);
  });

  describe('with a rate limit', () => {
    const startReplica = useReplicaStarter(suite);

    /** The result of a call that costs ten points, of which five are left at most. */
    async function limited(env: Record<string, string>) {
      const { url } = await startReplica({ RATE_LIMIT_POINTS: '5', RATE_LIMIT_WINDOW_SECONDS: '86400' });
      const other = await startMcp(url, { env });
      return callOf(other, 'check_packages')({ names: NAMES }).finally(() => other.close());
    }

    it('has none with a bypass token', async () => {
      const { body } = await suite.service.get(`/get-bypass?secret=${BYPASS_SECRET}`);
      const allowed = await limited({ BYPASS_TOKEN: body.bypass_token });
      expect(allowed.isError, textOf(allowed)).not.to.equal(true);
    });

    for (const [BYPASS_TOKEN, note] of [
      ['', ''],
      [`1700000000:${'A'.repeat(43)}`, ' The bypass token is not valid here, or expired: it lasts one hour.'],
    ] as const)
      it(`reports when to try again${note && ' after its token has expired'}`, async () => {
        const result = await limited({ BYPASS_TOKEN });
        expect(result.isError).to.equal(true);
        const [, detail] = /^rate_limited: (.*) Try again in \d+ seconds$/.exec(textOf(result)) ?? [];
        expect(detail).to.match(new RegExp(`resets at \\S+\\.${note}$`));
      });
  });
});

describe('The MCP server and weights', function () {
  this.timeout(60_000);
  /** How often packages are used. The first ones are checked. */
  const WEIGHTS: Record<string, number> = {
    react: 900,
    expresss: 2,
    lodahs: 0,
    loadsh: 400,
    expres: 199,
    expressx: 200,
    express: 5000,
    lodas: 99,
    lodash: 100,
  };
  const NAMED = ['react', 'expresss', 'lodahs', 'loadsh'];
  /** Each exists, is used more than those, and has no look-alike. */
  const COMMON = Array.from({ length: 7 }, (_, i) => `${'abcdefg'.charAt(i).repeat(5)}-common`);
  const suite = useService(() =>
    packagesNamed([...Object.keys(WEIGHTS), ...COMMON]).map((entry) => ({
      ...entry,
      weight: WEIGHTS[entry.name] ?? 9999,
    })),
  );

  /** The look-alikes of each existing name; undefined if it was not compared. */
  async function compare(names: string[], compare_existing = true) {
    const client = await startMcp(suite.service.url);
    const result = await callOf(client, 'check_packages')({ names, compare_existing });
    await client.close();
    const { results } = result.structuredContent as {
      results: { name: string; status: string; look_alikes?: { name: string }[] }[];
    };
    return results.map(({ name, status, look_alikes }) => {
      expect(status, name).to.equal('exists');
      return look_alikes?.map((one) => one.name);
    });
  }

  it('compares existing packages with look-alikes that are used 100 times more', async () => {
    expect(await compare(NAMED)).to.deep.equal([[], ['express', 'expressx'], ['loadsh', 'lodash'], []]);
  });

  it('compares the ten least used packages', async () => {
    const names = ['react', ...COMMON, 'expresss', 'lodahs', 'loadsh'];
    const found = await compare(names);
    expect(found.filter((one) => one === undefined)).to.have.length(1);
    expect(names[found.indexOf(undefined)]).to.be.oneOf(COMMON);
  });

  it('compares none unless asked to', async () => {
    expect(await compare(NAMED, false)).to.deep.equal(NAMED.map(() => undefined));
  });
});

describe('The MCP server without its service', () => {
  const USAGE = 'usage: node dist/mcp/mcp.js --url http://HOST:PORT\n';

  it('reports that it cannot be reached', async () => {
    const origin = `http://127.0.0.1:${await getPort()}`;
    const client = await startMcp(`${origin}/path`);
    const result = await callOf(client, 'similar_packages')({ name: 'redis' });
    await client.close();
    expect(result.isError).to.equal(true);
    expect(textOf(result)).to.match(
      /^http:.* cannot be reached \(connect ECONNREFUSED .+\)\. Try again in 10 seconds$/,
    );
    expect(textOf(result)).to.include(origin);
  });

  it('explains its usage if the address is missing or malformed', async () => {
    for (const args of [['--help'], [], ['--url', 'ftp://a']])
      expect(await runCommand('mcp/mcp', {}, args)).to.deep.equal({ code: 2, stdout: '', stderr: USAGE });
  });

  it('rejects a token that is invalid in a header, without printing it', async () => {
    const env = { BYPASS_TOKEN: '1700000000:hush-token\r\n' };
    expect(await runCommand('mcp/mcp', env, ['--url', 'http://127.0.0.1:1'])).to.deep.equal({
      code: 2,
      stdout: '',
      stderr: 'BYPASS_TOKEN has a character that no token has, such as a line break\n',
    });
  });

  /** What a client sends that calls a tool, and an unknown method. */
  const MESSAGES = [
    {
      id: 1,
      method: 'initialize',
      params: {
        protocolVersion: '2025-06-18',
        capabilities: {},
        clientInfo: { name: 'test', version: '1' },
      },
    },
    { method: 'notifications/initialized' },
    { id: 2, method: 'tools/call', params: { name: 'search_packages', arguments: { query: 'redis' } } },
    { id: 3, method: 'unknown' },
  ];

  it('writes only JSON-RPC to standard output until its input ends', async () => {
    const program = spawn(process.execPath, [MCP_PROGRAM, '--url', 'http://127.0.0.1:1']);
    const output = text(program.stdout);
    program.stdin.write('not JSON\n');
    for (const message of MESSAGES)
      program.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
    let written = '';
    program.stdout.on('data', (chunk: Buffer) => (written += chunk.toString()));
    await waitFor(() => [1, 2, 3].every((id) => written.includes(`"id":${id}`)), 'three responses');
    program.stdin.end();
    const [code] = (await once(program, 'exit')) as [number];
    expect(code).to.equal(0);
    for (const line of (await output).trimEnd().split('\n')) {
      expect((JSON.parse(line) as { jsonrpc: string }).jsonrpc).to.equal('2.0');
    }
  });
});
