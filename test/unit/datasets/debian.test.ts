import { rejects } from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { writeDebianDataset, type DebianDatasetOptions } from '../../../datasets/debian-dataset.js';
import { datasetServer, type DatasetServer } from '../../support/dataset-server.js';
import { bundledPackages } from '../../support/datasets.js';
import { SpawnedCli } from '../../support/spawn-cli.js';

const PACKAGES = `Package: beta
Version: 2.0-1
Description: a library
 with Version: 9 in its description

Package: alpha
Architecture: all
Version: 1:1.0
`;

/** The same text, compressed by XZ Utils. */
const PACKAGES_XZ = Buffer.from(
  '/Td6WFoAAATm1rRGAgAhARwAAAAQz1jM4ACIAGddACgYSGbb2jCF/hbfzhHip3U67yOiTPizgfwxOFTZ2/iDZwboPd33SUkPIxIxTygP' +
    '/dv04jZoFG48bz8E6mpVQRMKzIRDpkPH9LbJ1er7u5H/ZS8sX5RkvPDZ5ObYg8YMSPP0R6I/TIAAAIjeVrxTTyeCAAGDAYkBAACdCIL3' +
    'scRn+wIAAAAABFla',
  'base64',
);

const CSV = `package_no,name,version,url
1,alpha,1:1.0,https://tracker.debian.org/pkg/alpha
2,beta,2.0-1,https://tracker.debian.org/pkg/beta
`;

const DAY_MS = 86_400_000;
const JANUARY = new Date('2024-01-02T03:04:05Z');
const FEBRUARY = new Date('2024-02-02T03:04:05Z');
const MARCH = new Date('2024-03-02T03:04:05Z');

/** A `Packages` index of the given packages. */
function packagesIndex(versions: [name: string, version: string][]): string {
  return versions.map(([name, version]) => `Package: ${name}\nVersion: ${version}\n\n`).join('');
}

function gzipAt(text: string, date: Date): Buffer {
  const zipped = gzipSync(text);
  zipped.writeUInt32LE(date.getTime() / 1000, 4);
  return zipped;
}

function release(date: Date): string {
  return `Origin: Debian\nDate: ${date.toUTCString().replace('GMT', 'UTC')}\nValid-Until: never\n`;
}

describe('npm run dataset:debian', () => {
  let folder: string;
  let output: string;
  const servers: DatasetServer[] = [];

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'package-registry-search-debian-'));
    output = join(folder, 'dataset.csv.gz');
  });

  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => server.close()));
    await rm(folder, { recursive: true });
  });

  /** Writes a file below the temporary folder. @returns its path. */
  async function file(name: string, content: string | Buffer, modified = JANUARY): Promise<string> {
    const path = join(folder, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
    await utimes(path, modified, modified);
    return path;
  }

  /** @returns the address of the server's root, without a slash at the end. */
  async function serve(listener: RequestListener): Promise<string> {
    const server = await datasetServer(listener);
    servers.push(server);
    return new URL(server.url).origin;
  }

  async function write(indices: string[], options: Partial<DebianDatasetOptions> = {}): Promise<string> {
    await writeDebianDataset({ indices, output, ...options });
    return gunzipSync(await readFile(output)).toString();
  }

  /** Only the numbers and names. */
  async function numbered(indices: string[], numbers?: string): Promise<string[]> {
    const csv = await write(indices, { numbers });
    return csv.trimEnd().split('\n').slice(1).map((line) => line.split(',').slice(0, 2).join(' ')); // prettier-ignore
  }

  async function headerDate(): Promise<Date> {
    return new Date((await readFile(output)).readUInt32LE(4) * 1000);
  }

  describe('reads an index', () => {
    for (const [what, content] of [
      ['that is plain', PACKAGES],
      ['that is gzip', gzipSync(PACKAGES)],
      ['that is xz', PACKAGES_XZ],
      ['with CRLF', PACKAGES.replaceAll('\n', '\r\n')],
      ['with unusual spaces and case', `\n\n${PACKAGES.replaceAll('Package: ', 'PACKAGE:\t ')}\n\n`],
    ] as const) {
      it(what, async () => {
        expect(await write([await file('index', content)])).to.equal(CSV);
      });
    }

    it('from an http address', async () => {
      const url = await serve((_request, response) => response.end(PACKAGES_XZ));
      expect(await write([`${url}/Packages`], { date: JANUARY })).to.equal(CSV);
    });
  });

  describe('writes', () => {
    it('each package once, with the highest version of all indices', async () => {
      const main = packagesIndex([
        ['a', '1.9'],
        ['a', '1.10'],
        ['a', '1.2'],
        ['b', '1.0'],
        ['c', '1.0-1'],
      ]);
      const security = packagesIndex([
        ['b', '1.0~rc1'],
        ['c', '1.0-1+deb12u1'],
        ['d', '0:1'],
      ]);
      const indices = [await file('main', main), await file('security', security)];
      for (const order of [indices, indices.toReversed()]) {
        const versions = (await write(order)).split('\n').map((line) => line.split(',')[2]);
        expect(versions.slice(1, -1)).to.deep.equal(['1.10', '1.0', '1.0-1+deb12u1', '0:1']);
      }
    });

    it('names in byte order', async () => {
      const names = ['b', 'a-b', 'a+', 'a1', 'a', 'B', 'é', 'a.b', '\u{1f680}', '\uff5e'];
      const index = await file('index', packagesIndex(names.map((name) => [name, '1'])));
      const written = await numbered([index]);
      const sorted = ['B', 'a', 'a+', 'a-b', 'a.b', 'a1', 'b', 'é', '\uff5e', '\u{1f680}'];
      expect(written).to.deep.equal(sorted.map((name, i) => `${i + 1} ${name}`));
    });

    it('fields with commas and quotes as RFC 4180 requires', async () => {
      const index = await file('index', packagesIndex([['a', '1,0"x"']]));
      expect(await write([index])).to.match(/^1,a,"1,0""x""",https:\/\/tracker\.debian\.org\/pkg\/a$/m);
    });

    it('the same bytes for the same input', async () => {
      const indices = [await file('index', PACKAGES), await file('gzip', gzipSync(PACKAGES))];
      await write(indices);
      const first = await readFile(output);
      await write(indices.toReversed());
      expect(await readFile(output)).to.deep.equal(first);
      // Magic number, deflate, no flags, date, best compression, unknown operating system.
      expect(first.subarray(0, 10).toString('hex')).to.equal('1f8b0800257d936502ff');
    });
  });

  describe('--numbers', () => {
    const index = packagesIndex(['d', 'c', 'b', 'a'].map((name) => [name, '1']));

    it('keeps the numbers of an earlier dataset, and appends new names', async () => {
      const path = await file('index', index);
      const earlier = 'package_no,name,version,url\n7,c,1,https://a.example/\n2,d,1,\n5,gone,1,\n';
      for (const content of [earlier, gzipSync(earlier)]) {
        expect(await numbered([path], await file('earlier', content))).to.deep.equal([
          '2 d',
          '7 c',
          '8 a',
          '9 b',
        ]);
      }
    });

    it('keeps numbers stable from run to run, even with the output of the run before', async () => {
      await write([await file('index', index)]);
      const names = packagesIndex(['e', 'c', 'A'].map((name) => [name, '2']));
      const next = [await file('next', names)];
      expect(await numbered(next, output)).to.deep.equal(['3 c', '5 A', '6 e']);
      expect(await numbered(next, output)).to.deep.equal(['3 c', '5 A', '6 e']);
    });

    for (const [what, content, reason] of [
      ['without numbers', 'name,version,url\na,1,\n', 'the header has no column `package_no`'],
      ['with a bad row', 'package_no,name\n1,a\nx,b\n', 'line 3: package_no "x" is not a positive integer'],
      ['with a duplicate name', 'package_no,name\n1,a\n2,a\n', 'line 3: name "a" occurs twice'],
      ['with a duplicate number', 'package_no,name\n1,a\n1,b\n', 'line 3: package_no 1 occurs twice'],
      ['that is empty', '', 'the dataset is empty'],
    ] as const) {
      it(`rejects an earlier dataset ${what}`, async () => {
        const numbers = await file('earlier.csv', content);
        const indices = [await file('index', index)];
        await rejects(write(indices, { numbers }), { message: `${numbers}: ${reason}` });
        expect(await readdir(folder)).not.to.include('dataset.csv.gz');
      });
    }
  });

  describe('puts into the gzip header', () => {
    it('the newest date of all indices', async () => {
      await write([
        await file('a', PACKAGES, JANUARY),
        await file('b', PACKAGES, MARCH),
        await file('c', PACKAGES, FEBRUARY),
      ]);
      expect(await headerDate()).to.deep.equal(MARCH);
    });

    it('the date in the gzip header of an index rather than that of its file', async () => {
      await write([await file('index', gzipAt(PACKAGES, JANUARY), MARCH)]);
      expect(await headerDate()).to.deep.equal(JANUARY);
    });

    it('the date of the Release file of the suite rather than either', async () => {
      await file('debian/dists/suite/Release', release(FEBRUARY), MARCH);
      await write([
        await file('debian/dists/suite/main/binary-amd64/Packages.gz', gzipAt(PACKAGES, JANUARY), MARCH),
      ]);
      expect(await headerDate()).to.deep.equal(FEBRUARY);
    });

    it('the date of the file if Release is missing or has no date', async () => {
      const index = await file('debian/dists/suite/main/binary-amd64/Packages', PACKAGES, JANUARY);
      await write([index]);
      expect(await headerDate()).to.deep.equal(JANUARY);
      await file('debian/dists/suite/Release', 'Origin: Debian\nDate: today\n', MARCH);
      await write([index]);
      expect(await headerDate()).to.deep.equal(JANUARY);
    });

    it('Last-Modified of a response, without requesting Release', async () => {
      const asked: unknown[] = [];
      const url = await serve((request, response) => {
        asked.push(request.url);
        response.setHeader('Last-Modified', MARCH.toUTCString()).end(gzipAt(PACKAGES, JANUARY));
      });
      await write([`${url}/dists/suite/main/binary-amd64/Packages.gz`]);
      expect(await headerDate()).to.deep.equal(MARCH);
      expect(asked).to.deep.equal(['/dists/suite/main/binary-amd64/Packages.gz']);
    });

    for (const [what, lastModified] of [
      ['without Last-Modified', undefined],
      ['with Last-Modified in the future', new Date(Date.now() + DAY_MS).toUTCString()],
    ] as const) {
      it(`the date of Release for a response ${what}`, async () => {
        const url = await serve((request, response) => {
          if (lastModified !== undefined) response.setHeader('Last-Modified', lastModified);
          const isRelease = request.url === '/debian/dists/suite/updates/Release';
          response.end(isRelease ? release(FEBRUARY) : gzipAt(PACKAGES, JANUARY));
        });
        await write([`${url}/debian/dists/suite/updates/main/binary-amd64/Packages.gz`]);
        expect(await headerDate()).to.deep.equal(FEBRUARY);
      });
    }

    it('the date of the gzip header for a response without either', async () => {
      const url = await serve((request, response) => {
        if (request.url?.endsWith('Release')) response.writeHead(404).end();
        else response.end(gzipAt(PACKAGES, JANUARY));
      });
      await write([`${url}/dists/suite/main/binary-amd64/Packages.gz`]);
      expect(await headerDate()).to.deep.equal(JANUARY);
    });

    it('the given date rather than any other', async () => {
      const index = await file('index', gzipAt(PACKAGES, MARCH));
      await write([index], { date: FEBRUARY });
      expect(await headerDate()).to.deep.equal(FEBRUARY);
    });

    it('no default date, and fails if there is none', async () => {
      const url = await serve((_request, response) => response.end(PACKAGES));
      await rejects(write([`${url}/Packages`]), {
        message: 'the indices have no date: add one with --date',
      });
    });
  });

  describe('rejects', () => {
    const noIndex = 'this is not a Packages index';
    for (const [what, content, reason] of [
      ['an empty index', '', `${noIndex}: it has no stanza`],
      ['an index of empty lines', '\n\n\n', `${noIndex}: it has no stanza`],
      ['an HTML page', '<!doctype html>\n<p>Hello', `${noIndex}: line 1 begins a stanza without Package`],
      ['a Release file', release(MARCH), `${noIndex}: line 1 begins a stanza without Package`],
      [
        'a stanza without Package',
        `${PACKAGES}\nVersion: 1\n`,
        `${noIndex}: line 10 begins a stanza without Package`,
      ],
      [
        'a stanza without Version',
        `${PACKAGES}\nPackage: gamma\n\n`,
        'line 10: the stanza of "gamma" has no Version',
      ],
      [
        'a stanza with an empty Version',
        'Package: a\nVersion: \n',
        'line 1: the stanza of "a" has no Version',
      ],
      [
        'damaged gzip',
        gzipSync(PACKAGES).subarray(0, -9),
        'the compressed file is cut off or damaged: unexpected end of file',
      ],
      [
        'truncated xz',
        PACKAGES_XZ.subarray(0, -1),
        'the compressed file is cut off or damaged: get_next_output failed with error code 8',
      ],
    ] as const) {
      it(what, async () => {
        const index = await file('index', content);
        await rejects(write([await file('good', PACKAGES), index]), { message: `${index}: ${reason}` });
        expect(await readdir(folder)).to.have.members(['good', 'index']);
      });
    }

    it('an output that cannot be written', async () => {
      const index = await file('index', PACKAGES);
      await rejects(write([index], { output: join(folder, 'missing', 'x') }), {
        message: /^ENOENT: .+missing/,
      });
    });

    it('a missing file, and a folder', async () => {
      const missing = join(folder, 'missing');
      await rejects(write([missing]), { message: new RegExp(`^cannot read ${missing}: ENOENT: .+$`) });
      await rejects(write([folder]), { message: new RegExp(`^cannot read ${folder}: EISDIR: .+$`) });
    });

    for (const status of [204, 403, 404, 500]) {
      it(`a response with status ${status}`, async () => {
        const url = `${await serve((_request, response) => response.writeHead(status).end())}/Packages`;
        await rejects(write([url]), { message: `cannot read ${url}: HTTP status ${status}` });
      });
    }

    it('a server that cannot be reached, or that closes the connection', async () => {
      const url = await serve((_request, response) => {
        response.writeHead(200, { 'Content-Length': '1000' }).write('Package: a\n', () => response.destroy());
      });
      await rejects(write([`${url}/Packages`]), { message: /^cannot read http.+\/Packages: .+$/ });
      await servers.pop()?.close();
      await rejects(write([`${url}/Packages`]), {
        message: /^cannot read http.+\/Packages: connect ECONNREFUSED .+$/,
      });
    });

    it('an index whose Release file cannot be read', async () => {
      const url = await serve((request, response) => {
        response.writeHead(request.url?.endsWith('Release') ? 503 : 200).end(PACKAGES);
      });
      await rejects(write([`${url}/dists/suite/main/binary-amd64/Packages`]), {
        message: `cannot read ${url}/dists/suite/Release: HTTP status 503`,
      });
    });
  });

  describe('as a command', () => {
    async function run(...args: string[]): Promise<{ exit: number | null; stdout: string; stderr: string }> {
      const cli = new SpawnedCli('datasets/debian.ts', { INIT_CWD: folder }, args);
      const exit = await cli.exit();
      return { exit, stdout: cli.stdout, stderr: cli.stderr };
    }

    it('reports what it wrote, and resolves paths against the current folder', async () => {
      await file('Packages', PACKAGES);
      await file('numbers.csv', 'package_no,name\n4,beta\n');
      const given = [
        '--output',
        'dataset.csv.gz',
        '--numbers',
        'numbers.csv',
        '--date',
        '2024-03-02T04:04:05+01:00',
      ];
      expect(await run('Packages', ...given)).to.deep.equal({
        exit: 0,
        stdout: `Wrote 2 packages of 2024-03-02T03:04:05.000Z to ${output}.\n`,
        stderr: '',
      });
      expect(await headerDate()).to.deep.equal(MARCH);
      expect(gunzipSync(await readFile(output)).toString()).to.match(/^4,beta,.*\n5,alpha,/m);
    });

    it('fails with one line and exit code 1', async () => {
      await file('Packages', 'nothing');
      const { exit, stdout, stderr } = await run('Packages', '--output', 'dataset.csv.gz');
      expect({ exit, stdout }).to.deep.equal({ exit: 1, stdout: '' });
      expect(stderr).to.equal(
        `${join(folder, 'Packages')}: this is not a Packages index: line 1 begins a stanza without Package\n`,
      );
    });

    it('prints its usage and exits with 2 if it is misused', async () => {
      const later = new Date(Date.now() + DAY_MS).toISOString();
      const misuses: [args: string[], reason: RegExp][] = [
        [['--output', 'x'], /^name at least one Packages index$/],
        [['Packages'], /^--output is missing$/],
        [['Packages', '--output', 'x', '--force'], /^Unknown option '--force'/],
        [['Packages', '--output', 'x', '--date', '2024-02-31'], /^--date must be an ISO 8601 date/],
        [['Packages', '--output', 'x', '--date', later], /^--date must be an ISO 8601 date/],
      ];
      const runs = await Promise.all(misuses.map(([args]) => run(...args)));
      for (const [i, { exit, stderr }] of runs.entries()) {
        const [message, usage, ...rest] = stderr.split('\n');
        expect(message).to.match(misuses[i]?.[1] ?? /^$/);
        expect(usage).to.match(/^usage: npm run dataset:debian -- /);
        expect({ exit, rest }).to.deep.equal({ exit: 2, rest: [''] });
      }
    });
  });
});

describe('The bundled dataset', () => {
  const path = new URL('../../../data/debian-bookworm.csv.gz', import.meta.url);

  it('has its date in the gzip header', async () => {
    const header = (await readFile(path)).subarray(0, 10);
    expect(new Date(header.readUInt32LE(4) * 1000).toISOString()).to.equal('2026-11-21T02:10:46.000Z');
  });

  it('has unique names, in the order of unique numbers', () => {
    const packages = bundledPackages();
    expect(new Set(packages.map(({ name }) => name)).size).to.equal(packages.length);
    expect(packages.every(({ no }, i) => no > (packages[i - 1]?.no ?? 0))).to.equal(true);
  });
});
