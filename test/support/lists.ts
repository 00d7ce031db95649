import { gzipSync } from 'node:zlib';
import type { JsonPaths } from '../../src/config/json-paths.js';
import type { DatasetFormat } from '../../src/config/dataset-format.js';
import { registryNames } from '../fixtures/package-names.js';
import { integer, pick, seededRandom } from '../fixtures/random.js';
import type { Answer, Row } from './list-server.js';
import { tar } from './tar.js';

/** A list in a format, made by its specification, and an independent conversion of it. */
export interface ListExample {
  format: DatasetFormat;
  /** What it shows. */
  what: string;
  paths?: JsonPaths;
  /** Whether a cut between two packages cannot be noticed; `line`: only at the end of a line. */
  isOpenEnded?: true | 'line';
  /** The first document. */
  document: Buffer;
  /** The answer of a server that has the list; `document` at `/list`. */
  answer: (url: URL) => Answer;
  /** Converts the list, whose first document may be another one, naively: whole, in memory. */
  expected: (document: Buffer) => Row[];
}

const random = seededRandom(7);
const names = registryNames();

/** Some names, with repeated ones: once in a while an earlier one. */
function someNames(count: number): string[] {
  const taken: string[] = [];
  while (taken.length < count)
    taken.push(random() < 0.1 && taken.length > 0 ? pick(random, taken) : names.next().value);
  return taken;
}

const unique = (texts: readonly string[]) => [...new Set(texts)];
const version = () => [1, 2, 3].map(() => integer(random, 0, 20)).join('.');
const only = (document: Buffer) => ({
  document,
  answer: (url: URL) => (url.pathname === '/list' ? document : undefined),
});
const text = (document: Buffer) => document.toString();

/** Of equal names, the last entry, at the place of the first one. */
function lastByName(rows: readonly Row[]): Row[] {
  const byName = new Map<string, Row>();
  for (const row of rows) byName.set(row['name'] ?? '', row);
  return [...byName.values()];
}

function lowerParts(a: string, b: string): number {
  const [left, right] = [a, b].map((one) => one.split('.').map(Number)) as [number[], number[]];
  const at = left.findIndex((part, i) => part !== right[i]);
  return at === -1 ? 0 : (left[at] as number) - (right[at] as number);
}

const highest = (versions: readonly string[]) => [...versions].sort(lowerParts).at(-1) ?? '';

function csvExample(): ListExample {
  const quoted = (value: string) => pick(random, [value, `"${value}"`]);
  const rows = unique(someNames(300)).map((name, i) =>
    [`https://registry.example/packages/${name}`, version(), String(i + 7), name].map(quoted),
  );
  const records = [['url', 'version', 'package_no', 'name'], ...rows].map((values) => values.join(','));
  return {
    format: 'csv',
    what: 'all columns, some values quoted',
    ...only(Buffer.from(`\uFEFF${records.join('\r\n')}\r\n`)),
    expected: (document) =>
      text(document)
        .replaceAll('"', '')
        .trimEnd()
        .split('\r\n')
        .slice(1)
        .map((record) => record.split(','))
        .map(([url = '', no = '', number = '', name = '']) => ({
          name,
          package_no: number,
          version: no,
          url,
        })),
  };
}

function linesExample(): ListExample {
  const lines = someNames(300).map((name) =>
    pick(random, [name, `${name} ${version()}`, `  ${name}\t${version()} `, '', ' ']),
  );
  return {
    format: 'lines',
    isOpenEnded: 'line',
    what: 'names with and without versions, blank lines',
    ...only(Buffer.from(`\uFEFF${lines.join('\r\n')}\nlast\n`)),
    expected: (document) => {
      const words = text(document)
        .replace('\uFEFF', '')
        .split('\n')
        .map((line) => line.trim().split(/\s+/));
      return lastByName(
        words.filter(([name]) => name !== '').map(([name = '', no = '']) => ({ name, version: no })),
      );
    },
  };
}

function jsonlExample(): ListExample {
  const objects = unique(someNames(300)).map((name, i) => ({
    description: 'a "quoted", text\nof 日本 🚀',
    name: pick(random, [name, `${name} "x", é🚀`]),
    version: pick(random, [version(), 3, null, undefined]),
    package_no: 1000 - i,
    weight: pick(random, [0, 17, 2 ** 53 - 1]),
  }));
  const lines = objects.map((object) => JSON.stringify(object) + pick(random, ['\n', '\r\n', '\n\n']));
  return {
    format: 'jsonl',
    isOpenEnded: true,
    what: 'numbers, weights and a missing last line end',
    ...only(Buffer.from(lines.join('').trimEnd())),
    expected: (document) =>
      text(document)
        .split('\n')
        .filter((line) => line.trim() !== '')
        .map((line) => JSON.parse(line) as Record<string, string | number | null>)
        .map(({ name, version: no, package_no, weight }) => ({
          name: String(name),
          package_no: String(package_no),
          version: String(no ?? ''),
          weight: String(weight),
        })),
  };
}

/** Pages of 40 items of a list of maps, by a member, a token or `Link`. */
function jsonExample(next: 'member' | 'token' | 'link'): ListExample {
  const items = someNames(200).map((name) => ({
    id: name,
    latest: { no: version() },
    stats: { n: integer(random, 0, 99) },
  }));
  const page = (no: number) => {
    const isLast = no * 40 >= items.length;
    const reference = { member: `?page=${no + 1}`, token: no + 1, link: undefined }[next];
    return JSON.stringify({
      total: items.length,
      data: { list: items.slice((no - 1) * 40, no * 40) },
      meta: { next: isLast ? pick(random, [null, '', undefined]) : reference },
    });
  };
  const document = Buffer.from(page(1));
  return {
    format: 'json',
    what: `pages by ${next}`,
    paths: {
      items: ['data', 'list'],
      name: ['id'],
      version: ['latest', 'no'],
      weight: ['stats', 'n'],
      next:
        next === 'link'
          ? undefined
          : { path: ['meta', 'next'], parameter: next === 'token' ? 'page' : undefined },
    },
    document,
    answer: (url) => {
      const no = Number(url.searchParams.get('page') ?? 1);
      const body = no === 1 ? document : page(no);
      if (next !== 'link') return body;
      const links = [
        `<?page=1>; rel="first"`,
        ...(no * 40 < items.length ? [`<?page=${no + 1}>; title="a, <b>"; rel="x next"`] : []),
      ];
      return (response) => response.setHeader('Link', links.join(', ')).end(body);
    },
    expected: (first) => {
      const { data } = JSON.parse(text(first)) as { data: { list: typeof items } };
      const all = [...data.list, ...items.slice(40)];
      return lastByName(
        all.map(({ id, latest, stats }) => ({ name: id, version: latest.no, weight: String(stats.n) })),
      );
    },
  };
}

const normalise = (name: string) =>
  name
    .toLowerCase()
    .split(/[-_.]+/)
    .join('-');

function firstByProject(spellings: readonly string[]): Row[] {
  const seen = new Set<string>();
  return spellings
    .filter((name) => !seen.has(normalise(name)) && seen.add(normalise(name)))
    .map((name) => ({ name }));
}

function pypiJsonExample(): ListExample {
  const spellings = someNames(300).map((name) =>
    pick(random, [name, name.toUpperCase(), name.replaceAll('-', '_.')]),
  );
  const projects = spellings.map((name, i) => ({ '_last-serial': i, name }));
  return {
    format: 'pypi',
    what: 'JSON, with the version at its end',
    ...only(
      Buffer.from(JSON.stringify({ projects, meta: { '_last-serial': 5, 'api-version': '1.4' } }, null, 1)),
    ),
    expected: (document) => {
      const index = JSON.parse(text(document)) as { projects: { name: string }[] };
      return firstByProject(index.projects.map(({ name }) => name));
    },
  };
}

function pypiHtmlExample(): ListExample {
  const spellings = someNames(300)
    .map((name) => name.replace(/[@/]/g, ''))
    .map((name) => pick(random, [name, name.toUpperCase()]));
  const links = spellings.map((name) => {
    const href = pick(random, [
      `/simple/${normalise(name)}/`,
      `${normalise(name)}/?a=1#x`,
      `https://h.example/x/${name}/`,
    ]);
    return pick(random, [`<a href="${href}">${name}</a><br/>`, `<A class=x HREF='${href}'> ${name}\n</A>`]);
  });
  const page = [
    '<!DOCTYPE html><html><head><title>Simple</title></head><body>',
    '<a href="/">Home</a>',
    ...links,
    '</body></html>',
  ];
  return {
    format: 'pypi',
    isOpenEnded: true,
    what: 'HTML, with other links',
    ...only(Buffer.from(`\n ${page.join('\n')}\n`)),
    expected: (document) => {
      const anchors = [...text(document).matchAll(/<a [^>]*href=["']([^"']*)["'][^>]*>([^<]*)<\/a>/gi)];
      const isProject = ([, href = '', name = '']: string[]) =>
        normalise(
          href
            .replace(/[?#].*/, '')
            .split('/')
            .findLast((part) => part !== '') ?? '',
        ) === normalise(name.trim());
      return firstByProject(
        anchors.filter((anchor) => isProject([...anchor])).map(([, , name = '']) => name.trim()),
      );
    },
  };
}

/** CouchDB with 250 documents, in byte order, whose pages have at most 60 rows. */
function npmExample(): ListExample {
  const ids = unique(['_design/app', '_design/scratch', ...someNames(250)]).sort((a, b) =>
    Buffer.from(a).compare(Buffer.from(b)),
  );
  const page = (start: string | null) => {
    const from = start === null ? 0 : ids.findIndex((id) => Buffer.from(id).compare(Buffer.from(start)) >= 0);
    const rows = from === -1 ? [] : ids.slice(from, from + 60);
    const lines = rows.map((id) =>
      JSON.stringify({ id, key: id, value: { rev: '1-967a00dff5e02add41819138abb3284d' } }),
    );
    return `{"total_rows":${ids.length},"offset":${from},"rows":[\n${lines.join(',\n')}\n]}\n`;
  };
  return {
    format: 'npm',
    what: 'pages that are shorter than asked for',
    document: Buffer.from(page(null)),
    answer: (url) => {
      const startkey = url.searchParams.get('startkey');
      return page(startkey === null ? null : (JSON.parse(startkey) as string));
    },
    expected: (first) => {
      const { rows } = JSON.parse(text(first)) as { rows: { id: string }[] };
      return unique([...rows.map(({ id }) => id), ...ids.slice(60)])
        .filter((id) => !id.startsWith('_'))
        .map((name) => ({ name }));
    },
  };
}

function rubygemsExample(): ListExample {
  const gems = someNames(300).map((name) => name.replace(/[@/]/g, ''));
  const listed: Record<string, string[]> = {};
  const lines = gems.map((name) => {
    const known = (listed[name] ??= []);
    const withdrawn = known.length > 0 && random() < 0.5 ? [`-${pick(random, known)}`] : [];
    const added = [0, 1].map(() => version() + pick(random, ['', '', '-java', '-x86_64-linux']));
    known.push(...added);
    return `${name} ${[...added, ...withdrawn].join(',')} ${'0'.repeat(32)}`;
  });
  const only1 = ['gone 1.0.0 x', 'gone -1.0.0 x'];
  return {
    format: 'rubygems',
    isOpenEnded: 'line',
    what: 'repeated, withdrawn and platform versions',
    ...only(Buffer.from(['created_at: 2024-04-01T00:00:05Z', '---', ...lines, ...only1, ''].join('\n'))),
    expected: (document) => {
      const left = new Map<string, string[]>();
      for (const line of text(document)
        .replace(/^.*---\n/s, '')
        .split('\n')
        .slice(0, -1)) {
        const [name = '', versions = ''] = line.split(' ');
        let known = left.get(name) ?? [];
        for (const one of versions.split(',')) {
          known = one.startsWith('-') ? known.filter((other) => `-${other}` !== one) : [...known, one];
        }
        left.set(name, known);
      }
      return [...left]
        .filter(([, versions]) => versions.length > 0)
        .map(([name, versions]) => ({
          name,
          version: highest(versions.map((one) => one.split('-')[0] ?? '')),
        }));
    },
  };
}

function debianExample(encode: (text: string) => Buffer): ListExample {
  const stanzas = someNames(200).map((name) =>
    [
      `${pick(random, ['Package', 'PACKAGE'])}: ${name}`,
      'Description: a\n text: of two lines\n .',
      `Version:${version()} `,
      'X: y',
      '',
    ].join('\n'),
  );
  return {
    format: 'debian',
    isOpenEnded: 'line',
    what: 'stanzas of several versions',
    ...only(encode(stanzas.join('\n'))),
    expected: (document) => {
      const versions = new Map<string, string[]>();
      for (const stanza of text(document)
        .split('\n\n')
        .filter((part) => part.trim() !== '')) {
        const [, name = ''] = /^package: (.*)$/im.exec(stanza) ?? [];
        const [, no = ''] = /^version:(.*)$/im.exec(stanza) ?? [];
        versions.set(name, [...(versions.get(name) ?? []), no.trim()]);
      }
      return [...versions].map(([name, all]) => ({ name, version: highest(all) }));
    },
  };
}

function packagistExample(
  what: string,
  document: object,
  included: Record<string, object> = {},
): ListExample {
  return {
    format: 'packagist',
    what,
    document: Buffer.from(JSON.stringify(document)),
    answer: (url) => JSON.stringify(url.pathname === '/list' ? document : included[url.pathname]),
    expected: (first) => {
      const root = JSON.parse(text(first)) as Record<string, Record<string, unknown> & string[]>;
      const whole = root['packageNames'] ?? root['available-packages'];
      const files = Object.values(included) as (typeof root)[];
      const listed = files.flatMap((file) => file['packageNames'] ?? []);
      const keys = [root, ...files].flatMap((file) =>
        [file['packages'] ?? {}, file['providers'] ?? {}].flatMap(Object.keys),
      );
      return unique(whole ?? (root['list'] === undefined ? keys : listed)).map((name) => ({ name }));
    },
  };
}

const asMap = (keys: readonly string[]) =>
  Object.fromEntries(keys.map((key) => [key, { '1.0': { name: key, require: {} } }]));

/** The records of a CSV whose lines all end. */
function recordsOf(csv: string): string[][] {
  const records: string[][] = [[]];
  for (const [, field = '', end] of csv.matchAll(/("(?:[^"]|"")*"|[^,\n]*)([,\n])/g)) {
    records.at(-1)?.push(field.startsWith('"') ? field.slice(1, -1).replaceAll('""', '"') : field);
    if (end === '\n') records.push([]);
  }
  return records.slice(0, -1);
}

/** A dump of crates.io: files in an order in which nothing is known when it is read, columns in another one. */
function cratesExample(): ListExample {
  const rows = unique(someNames(150)).map((name, i) => ({
    id: i * 3 + 1,
    name,
    version: i % 9 === 0 ? undefined : i + 5000,
  }));
  const quoted = (value: string | number | undefined) => {
    const field = String(value ?? '');
    return /[",\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
  };
  const csv = (header: string[], records: (string | number | undefined)[][]) =>
    [header, ...records].map((fields) => `${fields.map(quoted).join(',')}\n`).join('');
  const readme = 'a "readme", with\n\n```\nlet é = "🚀";\n```\n'.repeat(300);
  const files = {
    'README.md': '# crates.io Database Dump',
    'metadata.json': '{"timestamp":"2026-02-03T04:05:06.123456789Z","crates_io_commit":"x"}',
    'data/versions.csv': csv(
      ['num', 'id', 'features', 'yanked'],
      Array.from({ length: 1000 }, (_, i) => [`0.${i}.0`, i + 4800, '{"a":["b"]}', pick(random, ['t', 'f'])]),
    ),
    'data/crate_downloads.csv': csv(
      ['downloads', 'crate_id'],
      rows.slice(10).map(({ id }) => [id * 7, id]),
    ),
    'data/default_versions.csv': csv(
      ['crate_id', 'num_versions', 'version_id'],
      rows.filter(({ version: no }) => no !== undefined).map(({ id, version: no }) => [id, '', no]),
    ),
    'data/crates.csv': csv(
      ['description', 'name', 'readme', 'id'],
      rows.map(({ id, name }) => ['', name, readme, id]),
    ),
    'data/keywords.csv': 'id\n1\n',
  };
  const document = gzipSync(
    tar(Object.fromEntries(Object.entries(files).map(([name, file]) => [`2026-02-03-040506/${name}`, file]))),
  );
  return {
    format: 'crates',
    what: 'a dump whose versions come first',
    ...only(document),
    expected: () => {
      const table = (name: keyof typeof files) => {
        const [header, ...records] = recordsOf(files[name]);
        return records.map((fields) =>
          Object.fromEntries((header ?? []).map((column, i) => [column, fields[i] ?? ''])),
        );
      };
      const numbers = table('data/versions.csv');
      const defaults = table('data/default_versions.csv');
      const downloads = table('data/crate_downloads.csv');
      // In the order in which the ids occur.
      const order = unique([...downloads, ...defaults].map((row) => row['crate_id'] ?? ''));
      const all = table('data/crates.csv').map(({ id = '', name = '' }) => {
        const of = defaults.find((row) => row['crate_id'] === id)?.['version_id'];
        return {
          name,
          package_no: id,
          version: numbers.find((row) => row['id'] === of)?.['num'] ?? '',
          weight: downloads.find((row) => row['crate_id'] === id)?.['downloads'] ?? '0',
        };
      });
      const place = (id: string) => (order.includes(id) ? order.indexOf(id) : order.length);
      return all.sort((a, b) => place(a.package_no) - place(b.package_no));
    },
  };
}

const [some, more] = [unique(someNames(200)), unique(someNames(200))];
const satis = {
  includes: { 'include/all$1.json': { sha1: '1' } },
  packages: [],
  'metadata-url': '/p2/%package%.json',
};

/** One or more lists in each format. */
export const EXAMPLES: readonly ListExample[] = [
  csvExample(),
  linesExample(),
  jsonlExample(),
  jsonExample('member'),
  jsonExample('token'),
  jsonExample('link'),
  pypiJsonExample(),
  pypiHtmlExample(),
  npmExample(),
  rubygemsExample(),
  debianExample((stanzas) => Buffer.from(stanzas)),
  cratesExample(),
  packagistExample('packageNames', { packageNames: some }),
  packagistExample('available-packages of Satis', {
    ...satis,
    'available-packages': [...some, 'a/b', 'a/b'],
  }),
  packagistExample(
    'list',
    { list: '/all.json', packages: [], 'metadata-url': '/' },
    { '/all.json': { packageNames: more } },
  ),
  packagistExample('includes of Satis', satis, { '/include/all$1.json': { packages: asMap(some) } }),
  packagistExample(
    'packages and providers',
    {
      packages: asMap(some),
      'provider-includes': { 'p/all$%hash%.json': { sha256: 'f00' } },
      'providers-url': '/',
    },
    { '/p/all$f00.json': { providers: asMap(more) } },
  ),
];
