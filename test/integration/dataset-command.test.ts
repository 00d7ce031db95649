import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { trickled } from '../support/dataset-server.js';
import { bundledPackages } from '../support/datasets.js';
import { useListServer, withStatus, type Answer } from '../support/list-server.js';
import { newFolder } from '../support/run-folder.js';
import { inShell, runCommand, SpawnedCli } from '../support/spawn-cli.js';

const BUNDLED = new URL('../../data/debian-bookworm.csv.gz', import.meta.url);

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Options for names of a server. */
const lines = (origin: string, output = 'out.gz') =>
  `--format lines --url ${origin}/list --template https://a.example/{name} --output ${output}`;

const MARCH = 'Sat, 02 Mar 2024 03:04:05 GMT';

describe('npm run dataset', function () {
  this.timeout(60_000);
  const serve = useListServer();
  let folder: string;

  beforeEach(() => (folder = newFolder()));

  /** @param options separated by spaces. */
  function run(options: string, env: Record<string, string> = {}) {
    const args = options.split(' ').filter((word) => word !== '');
    return runCommand('cli/dataset', { INIT_CWD: folder, ...env }, args);
  }

  /** Writes a dataset. @returns its lines. */
  async function convert(options: string, env: Record<string, string> = {}): Promise<string[]> {
    const { code, stderr } = await run(`${options} --output out.gz`, env);
    expect([code, stderr]).to.deep.equal([0, '']);
    return gunzipSync(await readFile(join(folder, 'out.gz')))
      .toString()
      .trimEnd()
      .split('\n');
  }

  it('makes the bundled dataset from Packages indexes, byte by byte', async () => {
    const stanzas = bundledPackages().map(({ name, version }) => `Package: ${name}\nVersion: ${version}\n\n`);
    const half = stanzas.length / 2;
    const older = 'Package: 0ad\nVersion: 0.0.1\n\n';
    const parts = [stanzas.slice(half).join('') + older, older + stanzas.slice(0, half).join('')];
    const bodies = [gzipSync(parts[0] as string), parts[1] as string];
    const { origin } = await serve(({ pathname }) => bodies[pathname === '/first/Packages.gz' ? 0 : 1]);
    await writeFile(join(folder, 'earlier.csv.gz'), await readFile(BUNDLED));
    const { code, stdout, stderr } = await run(
      `--format debian --url ${origin}/first/Packages.gz --url ${origin}/second/Packages --template https://tracker.debian.org/pkg/{+name}` +
        ' --numbers-of earlier.csv.gz --date 2026-11-21T03:10:46+01:00 --output debian.csv.gz',
    );
    expect([code, stderr]).to.deep.equal([0, '']);
    expect(stdout.split('\n').slice(0, 3)).to.deep.equal([
      'Dataset: downloading …',
      'Dataset: checking …',
      'Dataset: writing …',
    ]);
    const output = join(folder, 'debian.csv.gz');
    expect(stdout).to.contain(`Wrote 63666 packages of 2026-11-21T02:10:46.000Z to ${output}.`);
    expect((await readFile(output)).equals(await readFile(BUNDLED))).to.equal(true);
  });

  it('numbers names in order but keeps the numbers of an earlier run', async () => {
    let list = 'é\nb 2\na\n';
    const { origin } = await serve(() => list);
    const options = `--format lines --url ${origin}/list --template https://a.example/{name}`;
    expect(await convert(options)).to.deep.equal([
      'package_no,name,version,url',
      '1,a,latest,https://a.example/a',
      '2,b,2,https://a.example/b',
      '3,é,latest,https://a.example/%C3%A9',
    ]);
    list = 'a0\né\nb 3\n';
    const [, ...rows] = await convert(`${options} --numbers-of out.gz`);
    expect(rows.map((row) => row.split(',', 3).join())).to.deep.equal(['2,b,3', '3,é,latest', '4,a0,latest']);
  });

  it('keeps the numbers, addresses and weights of a list that has some', async () => {
    const list = [
      { package_no: 7, name: 'b', url: 'https://b.example/', weight: 5 },
      { package_no: 3, name: 'a,"', version: '1' },
    ];
    await writeFile(join(folder, 'list.jsonl'), list.map((line) => `${JSON.stringify(line)}\n`).join(''));
    const options = '--format jsonl --url list.jsonl --template https://a.example/{name}';
    expect(await convert(options)).to.deep.equal([
      'package_no,name,version,url,weight',
      '3,"a,""",1,https://a.example/a%2C%22,0',
      '7,b,latest,https://b.example/,5',
    ]);
    const both = await run(`${options} --numbers-of out.gz --output both.gz`);
    expect(both).to.include({
      code: 1,
      stderr: 'the list has numbers of its own: leave out --numbers-of\n',
    });
    expect(await readdir(folder)).to.have.members(['list.jsonl', 'out.gz']);
  });

  it('reads the variables of the service', async () => {
    const { origin, requests } = await serve(({ searchParams }): Answer => (response) => {
      const isLast = searchParams.get('page') === '2';
      if (!isLast) response.setHeader('Link', `<${origin}/api?page=2>; rel="next"`);
      response.setHeader('Last-Modified', MARCH).end(JSON.stringify([{ id: isLast ? 'b' : 'a', tag: 1 }]));
    });
    const env = {
      DATASET_FORMAT: 'json',
      DATASET_URL: `${origin}/api`,
      DATASET_JSON: 'name=id version=tag',
      DATASET_AUTHORIZATION: 'Bearer a-token-of-the-test',
      PACKAGE_URL_TEMPLATE: 'https://a.example/{name}',
    };
    const [, ...rows] = await convert('', env);
    expect(rows).to.deep.equal(['1,a,1,https://a.example/a', '2,b,1,https://a.example/b']);
    const sent = requests.map(({ headers }) => headers.authorization);
    expect(sent).to.deep.equal(Array(2).fill('Bearer a-token-of-the-test'));
    const header = (await readFile(join(folder, 'out.gz'))).subarray(0, 8);
    expect(new Date(header.readUInt32LE(4) * 1000).toUTCString()).to.equal(MARCH);
  });

  it('takes a path from the folder where it was called, whatever runs it', async () => {
    await mkdir(join(folder, 'called/lists'), { recursive: true });
    await writeFile(join(folder, 'called/lists/a.csv'), 'name,url\na,https://a.example/\n');
    await writeFile(join(folder, 'package.json'), '{}');
    const command = '"$@" --url lists/a.csv --output lists/out.gz';
    const called = join(folder, 'called');
    for (const [env, script] of [
      [{ INIT_CWD: called, npm_package_json: join(ROOT, 'package.json') }, command],
      // A script of another package, which has changed its folder.
      [{ INIT_CWD: folder, npm_package_json: join(folder, 'package.json') }, `cd '${called}' && ${command}`],
      [{}, `cd '${called}' && ${command}`],
    ] as const) {
      const absolute = script.replace('"$@"', `"$1" '${join(ROOT, 'dist/cli/dataset.js')}'`);
      const { code, stderr } = await runCommand('cli/dataset', env, [], inShell(absolute));
      expect([code, stderr], JSON.stringify(env)).to.deep.equal([0, '']);
      await rm(join(called, 'lists/out.gz'));
    }
  });

  it('says which invalid rows it skips if that is permitted', async () => {
    await writeFile(join(folder, 'list.csv'), 'name,url\na,https://a.example/\nb,c\na,https://b.example/\n');
    const options = '--url list.csv --output out.gz';
    const tolerant = await run(options, { DATASET_MAX_BAD_ROWS: '2' });
    expect(tolerant.code).to.equal(0);
    expect(tolerant.stderr).to.equal(
      '2 invalid rows were skipped:\nline 3: url "c" is not an absolute http(s) URL without control characters and white space at its ends\nline 4: name "a" is already on line 2\n',
    );
  });

  it('keeps the old file if the download fails', async () => {
    await writeFile(join(folder, 'out.gz'), 'old');
    const { origin } = await serve(withStatus(403));
    const { code, stderr } = await run(lines(origin.replace('//', '//user:hidden-from-logs@')));
    expect([code, stderr]).to.deep.equal([1, "the dataset's server responded with 403 instead of 200\n"]);
    expect(await readdir(folder)).to.deep.equal(['out.gz']);
    expect(await readFile(join(folder, 'out.gz'), 'utf8')).to.equal('old');
  });

  it('asks no server if the file cannot be written', async () => {
    const { origin, requests } = await serve(() => 'a\n');
    const { code, stderr } = await run(lines(origin, 'missing/out.gz'));
    expect(code).to.equal(1);
    expect(stderr).to.match(/^ENOENT: no such file or directory, access '.+\/missing'\n$/);
    expect(requests).to.deep.equal([]);
  });

  it('exits with 130 without a file if it is stopped', async () => {
    const { origin } = await serve(
      () => (response) => trickled('a\n', 4096, 100)(undefined as never, response),
    );
    const cli = new SpawnedCli('cli/dataset', { INIT_CWD: folder }, lines(origin).split(' '));
    await cli.prints(/downloading/, 10_000);
    expect(await cli.stop('SIGINT')).to.equal(130);
    expect(cli.stderr).to.equal('stopped; nothing was written\n');
    expect(await readdir(folder)).to.deep.equal([]);
  });

  it('exits with 2 and names the missing or invalid argument', async () => {
    const later = new Date(Date.now() + 86_400_000).toISOString();
    const badDate =
      '--date must be an ISO 8601 date after 1970 and not in the future, such as 2026-01-31T12:00:00Z';
    for (const [options, reason] of [
      ['--output out.gz', '--url is missing'],
      ['--url list.csv', '--output must be a file that ends with .gz'],
      ['--url list.csv --output out.gz --date 2024-02-31', badDate],
      [`--url list.csv --output out.gz --date ${later}`, badDate],
      ['--url a --format npm --output out.gz', /^PACKAGE_URL_TEMPLATE must be set with this DATASET_FORMAT/],
    ] as const) {
      const { code, stdout, stderr } = await run(options);
      expect([code, stdout], options).to.deep.equal([2, '']);
      const [first] = stderr.split('\n');
      if (typeof reason === 'string') {
        expect(first).to.equal(reason);
        expect(stderr).to.contain('usage: npm run dataset -- --output FILE.csv.gz');
      } else expect(first).to.match(reason);
    }
  });
});
