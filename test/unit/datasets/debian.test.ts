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

/** A `Packages` index. @param packages such as `a 1.0`. */
function packagesIndex(...packages: string[]): string {
  return packages.map((line) => `Package: ${line.replace(' ', '\nVersion: ')}\n\n`).join('');
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

  /** The given columns of the written rows, counted from 0. */
  async function columns(indices: string[], numbers: string | undefined, ...at: number[]): Promise<string[]> {
    const [, ...rows] = (await write(indices, { numbers })).trimEnd().split('\n');
    return rows.map((row) => at.map((column) => row.split(',')[column]).join(' '));
  }

  /** The date in the header of the written file. */
  async function dateOf(indices: string[]): Promise<Date> {
    await write(indices);
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
  });

  describe('writes', () => {
    it('each package once, with the highest version of all indices', async () => {
      const main = packagesIndex('a 1.9', 'a 1.10', 'a 1.2', 'b 1.0', 'c 1.0-1');
      const security = packagesIndex('b 1.0~rc1', 'c 1.0-1+deb12u1', 'd 0:1');
      const indices = [await file('main', main), await file('security', security)];
      for (const order of [indices, indices.toReversed()]) {
        const versions = await columns(order, undefined, 2);
        expect(versions).to.deep.equal(['1.10', '1.0', '1.0-1+deb12u1', '0:1']);
      }
    });

    it('names in byte order', async () => {
      const names = ['b', 'a-b', 'a+', 'a1', 'a', 'B', 'é', 'a.b', '\u{1f680}', '\uff5e'];
      const index = await file('index', packagesIndex(...names.map((name) => `${name} 1`)));
      const sorted = ['B', 'a', 'a+', 'a-b', 'a.b', 'a1', 'b', 'é', '\uff5e', '\u{1f680}'];
      expect(await columns([index], undefined, 0, 1)).to.deep.equal(
        sorted.map((name, i) => `${i + 1} ${name}`),
      );
    });

    it('fields with commas and quotes as RFC 4180 requires', async () => {
      const index = await file('index', packagesIndex('a 1,0"x"'));
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
    const index = packagesIndex('d 1', 'c 1', 'b 1', 'a 1');

    it('keeps the numbers of an earlier dataset, and appends new names', async () => {
      const path = await file('index', index);
      const earlier = 'package_no,name,version,url\n7,c,1,https://a.example/\n2,d,1,\n5,gone,1,\n';
      for (const content of [earlier, gzipSync(earlier)]) {
        const numbered = await columns([path], await file('earlier', content), 0, 1);
        expect(numbered).to.deep.equal(['2 d', '7 c', '8 a', '9 b']);
      }
    });

    it('keeps numbers stable from run to run, even with the output of the run before', async () => {
      await write([await file('index', index)]);
      const next = [await file('next', packagesIndex('e 2', 'c 2', 'A 2'))];
      for (let run = 0; run < 2; run++) {
        expect(await columns(next, output, 0, 1)).to.deep.equal(['3 c', '5 A', '6 e']);
      }
    });

    for (const [what, content, reason] of [
      ['without numbers', 'name,version,url\na,1,\n', 'the header has no column `package_no`'],
      [
        'with a bad row',
        'package_no,name\n1,a\nx,b\n',
        'line 3: package_no "x" is not a number from 1 to 9007199254740991 in digits without leading zeros',
      ],
      ['with a duplicate name', 'package_no,name\n1,a\n2,a\n', 'line 3: name "a" occurs twice'],
      ['with a duplicate number', 'package_no,name\n1,a\n1,b\n', 'line 3: package_no 1 occurs twice'],
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
    const PATH = 'debian/dists/suite/updates/main/binary-amd64/Packages';
    const RELEASE = 'debian/dists/suite/updates/Release';

    it('the newest date of all indices', async () => {
      const dates = Object.entries({ a: JANUARY, b: MARCH, c: FEBRUARY });
      const indices = dates.map(([name, date]) => file(name, PACKAGES, date));
      expect(await dateOf(await Promise.all(indices))).to.deep.equal(MARCH);
    });

    it('the date in the Release file of the suite, else in the gzip header, else of the file', async () => {
      const zipped = await file(PATH, gzipAt(PACKAGES, JANUARY), MARCH);
      expect(await dateOf([zipped])).to.deep.equal(JANUARY);
      await file(RELEASE, release(FEBRUARY), MARCH);
      expect(await dateOf([zipped])).to.deep.equal(FEBRUARY);
      await file(RELEASE, 'Origin: Debian\nDate: today\n', MARCH);
      expect(await dateOf([await file(PATH, PACKAGES, JANUARY)])).to.deep.equal(JANUARY);
    });

    /** Responds with a gzip index of January, and with Release if there is one. @returns the requested paths. */
    async function dateOfResponse(lastModified?: Date, releaseFile?: string): Promise<[Date, unknown[]]> {
      const asked: unknown[] = [];
      const url = await serve((request, response) => {
        asked.push(request.url);
        if (lastModified !== undefined) response.setHeader('Last-Modified', lastModified.toUTCString());
        if (request.url === `/${PATH}`) response.end(gzipAt(PACKAGES, JANUARY));
        else response.writeHead(releaseFile === undefined ? 404 : 200).end(releaseFile);
      });
      return [await dateOf([`${url}/${PATH}`]), asked];
    }

    it('Last-Modified of a response, without requesting Release', async () => {
      expect(await dateOfResponse(MARCH, release(FEBRUARY))).to.deep.equal([MARCH, [`/${PATH}`]]);
    });

    it('the date of Release, else of the gzip header, for a response without Last-Modified', async () => {
      const asked = [`/${PATH}`, `/${RELEASE}`];
      for (const lastModified of [undefined, new Date(Date.now() + DAY_MS)]) {
        expect(await dateOfResponse(lastModified, release(FEBRUARY))).to.deep.equal([FEBRUARY, asked]);
        expect(await dateOfResponse(lastModified)).to.deep.equal([JANUARY, asked]);
      }
    });

    it('no default date, and fails if there is none', async () => {
      const url = await serve((_request, response) => response.end(PACKAGES));
      const message = 'the indices have no date: add one with --date';
      await rejects(write([`${url}/Packages`]), { message });
    });
  });

  describe('rejects', () => {
    const noIndex = 'this is not a Packages index';
    const noPackage = (line: number) => `${noIndex}: line ${line} begins a stanza without Package`;
    const damaged = 'the compressed file is cut off or damaged';
    for (const [what, content, reason] of [
      ['an empty index', '', `${noIndex}: it has no stanza`],
      ['an HTML page', '<!doctype html>\n<p>Hello', noPackage(1)],
      ['no Package', `${PACKAGES}\nVersion: 1\n`, noPackage(10)],
      ['no Version', `${PACKAGES}\nPackage: c\n\n`, 'line 10: the stanza of "c" has no Version'],
      ['an empty Version', 'Package: a\nVersion: \n', 'line 1: the stanza of "a" has no Version'],
      ['damaged gzip', gzipSync(PACKAGES).subarray(0, -9), `${damaged}: unexpected end of file`],
      ['truncated xz', PACKAGES_XZ.subarray(0, -1), `${damaged}: get_next_output failed with error code 8`],
    ] as const) {
      it(what, async () => {
        const index = await file('index', content);
        await rejects(write([await file('good', PACKAGES), index]), { message: `${index}: ${reason}` });
        expect(await readdir(folder)).to.have.members(['good', 'index']);
      });
    }

    it('a missing file, a folder, and an error of a server', async () => {
      const missing = join(folder, 'missing');
      await rejects(write([missing]), { message: new RegExp(`^cannot read ${missing}: ENOENT: .+$`) });
      await rejects(write([folder]), { message: new RegExp(`^cannot read ${folder}: EISDIR: .+$`) });
      for (const status of [204, 403, 404, 500]) {
        const url = await serve((_request, response) => response.writeHead(status).end());
        await rejects(write([url]), { message: `cannot read ${url}: HTTP status ${status}` });
      }
    });

    it('a server that cannot be reached, or that closes the connection', async () => {
      const url = await serve((_request, response) => {
        response.writeHead(200, { 'Content-Length': '1000' }).write('Package: a\n', () => response.destroy());
      });
      await rejects(write([`${url}/Packages`]), { message: /^cannot read http.+\/Packages: .+$/ });
      await servers.pop()?.close();
      const message = `cannot read ${url}/Packages: connect ECONNREFUSED ${new URL(url).host}`;
      await rejects(write([`${url}/Packages`]), { message });
    });

    it('an index whose Release file cannot be read', async () => {
      const url = await serve((request, response) => {
        response.writeHead(request.url?.endsWith('Release') ? 503 : 200).end(PACKAGES);
      });
      const message = `cannot read ${url}/dists/suite/Release: HTTP status 503`;
      await rejects(write([`${url}/dists/suite/main/binary-amd64/Packages`]), { message });
    });
  });

  it('exits with 0 and its result, with 1 and the reason, or with 2 and its usage', async () => {
    await file('Packages', PACKAGES);
    await file('numbers.csv', 'package_no,name\n4,beta\n');
    const bad = await file('bad', '');
    const later = new Date(Date.now() + DAY_MS).toISOString();
    const usage =
      'usage: npm run dataset:debian -- PACKAGES_FILE_OR_URL … --output FILE [--numbers EARLIER_CSV] [--date ISO_DATE]\n';
    const badDate = `--date must be an ISO 8601 date after 1970 and not in the future, such as 2026-01-31T12:00:00Z\n${usage}`;
    const options = '--numbers numbers.csv --date 2024-03-02T04:04:05+01:00';
    const report = `Wrote 2 packages of ${MARCH.toISOString()} to ${output}.\n`;
    const runs: [given: string, exit: number, stdout: string, stderr: string][] = [
      [`Packages --output dataset.csv.gz ${options}`, 0, report, ''],
      ['bad --output x', 1, '', `${bad}: this is not a Packages index: it has no stanza\n`],
      ['--output x', 2, '', `name at least one Packages index\n${usage}`],
      ['Packages --output x --date 2024-02-31', 2, '', badDate],
      [`Packages --output x --date ${later}`, 2, '', badDate],
    ];
    const ended = runs.map(async ([given]) => {
      const cli = new SpawnedCli('datasets/debian.ts', { INIT_CWD: folder }, given.split(' '));
      return [given, await cli.exit(), cli.stdout, cli.stderr];
    });
    expect(await Promise.all(ended)).to.deep.equal(runs);
    const written = await readFile(output);
    expect(new Date(written.readUInt32LE(4) * 1000)).to.deep.equal(MARCH);
    expect(gunzipSync(written).toString()).to.match(/^4,beta,.*\n5,alpha,/m);
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
