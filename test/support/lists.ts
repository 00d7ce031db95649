import { existsSync, readFileSync } from 'node:fs';
import type { JsonPaths } from '../../src/config/json-paths.js';
import type { DatasetFormat } from '../../src/config/dataset-format.js';
import type { Answer, Row } from './list-server.js';

/** A recorded list in a format: the documents of its server, and `packages.tsv`, made by another program. */
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
  expected: readonly Row[];
}

const FOLDER = new URL('../fixtures/lists/', import.meta.url);

/** @param name of its folder, which has a file for each address: `list` for `/list`, `list.2` for `/list?page=2`. */
function recorded(
  name: string,
  format: DatasetFormat,
  what: string,
  more: Partial<ListExample> = {},
): ListExample {
  const path = (file: string) => new URL(`${name}/${file}`, FOLDER);
  const answer = ({ pathname, searchParams }: URL) => {
    const page = searchParams.get('page') ?? '1';
    const file = path(pathname.slice(1) + (page === '1' ? '' : `.${page}`));
    return existsSync(file) ? readFileSync(file) : undefined;
  };
  const [columns = [], ...rows] = readFileSync(path('packages.tsv'), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => line.split('\t'));
  const expected = rows.map((row) => Object.fromEntries(columns.map((column, i) => [column, row[i] ?? ''])));
  return { format, what, document: readFileSync(path('list')), answer, expected, ...more };
}

function json(by: string, next?: JsonPaths['next']): ListExample {
  const paths = {
    items: ['data', 'list'],
    name: ['id'],
    version: ['latest', 'no'],
    weight: ['stats', 'n'],
    next,
  };
  const example = recorded(`json-${by}`, 'json', `pages by ${by}`, { paths });
  if (by !== 'link') return example;
  const answer = (url: URL): Answer => {
    const next = `?page=${Number(url.searchParams.get('page') ?? 1) + 1}`;
    const link = example.answer(new URL(next, url)) && `, <${next}>; title="a, <b>"; rel="x next"`;
    return (response) =>
      response.setHeader('Link', `<?page=1>; rel="first"${link ?? ''}`).end(example.answer(url));
  };
  return { ...example, answer };
}

/** A recorded response with all rows, one a line, which the server sends in pages of at most 60. */
function npm(): ListExample {
  const example = recorded('npm', 'npm', 'pages that are shorter than asked for');
  const [head, ...lines] = example.document.toString().trimEnd().split('\n');
  const rows = lines.slice(0, -1).map((line) => line.replace(/,$/, ''));
  const page = (start = '') => {
    const from = rows.findIndex((row) => Buffer.from((JSON.parse(row) as { id: string }).id).compare(Buffer.from(start)) >= 0); // prettier-ignore
    return `${head}\n${(from === -1 ? [] : rows.slice(from, from + 60)).join(',\n')}\n]}\n`;
  };
  const answer = ({ searchParams }: URL) => page(JSON.parse(searchParams.get('startkey') ?? '""') as string);
  return { ...example, document: Buffer.from(page()), answer };
}

/** One or more lists in each format. */
export const EXAMPLES: readonly ListExample[] = [
  recorded('csv', 'csv', 'all columns, some values quoted'),
  recorded('lines', 'lines', 'names with and without versions, blank lines', { isOpenEnded: 'line' }),
  recorded('jsonl', 'jsonl', 'numbers, weights and a missing last line end', { isOpenEnded: true }),
  json('member', { path: ['meta', 'next'], parameter: undefined }),
  json('token', { path: ['meta', 'next'], parameter: 'page' }),
  json('link'),
  recorded('pypi-json', 'pypi', 'JSON, with the version at its end'),
  recorded('pypi-html', 'pypi', 'HTML, with other links', { isOpenEnded: true }),
  npm(),
  recorded('rubygems', 'rubygems', 'repeated, withdrawn and platform versions', { isOpenEnded: 'line' }),
  recorded('debian', 'debian', 'stanzas of several versions', { isOpenEnded: 'line' }),
  recorded('crates', 'crates', 'a dump whose versions come first'),
  recorded('packagist-names', 'packagist', 'packageNames'),
  recorded('packagist-available', 'packagist', 'available-packages of Satis'),
  recorded('packagist-list', 'packagist', 'list'),
  recorded('packagist-includes', 'packagist', 'includes of Satis'),
  recorded('packagist-providers', 'packagist', 'packages and providers'),
];
