import { setTimeout as pause } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { integer, pick, seededRandom } from '../test/fixtures/random.js';
import { bundledPackages } from '../test/support/datasets.js';
import { withEngines } from './engines.js';
import { uncachedEnv } from './load.js';
import { ServerProcess } from './processes.js';

/**
 * `npm run bench -- squats` makes a thousand names that could be mistaken for one of the bundled snapshot, of several kinds, and
 * counts how often `similar_packages` of the MCP server finds the original: within its ten results, or at all.
 */

const COUNT = 1000;
const LIMIT = 10;
const MAX_LIMIT = 50;

const random = seededRandom(20_261_126);

const SEPARATOR = /[-_.]/g;
const GLYPHS: Record<string, string> = {
  a: 'а',
  c: 'с',
  e: 'е',
  i: 'і',
  l: '1',
  o: '0',
  p: 'р',
  s: 'ѕ',
  x: 'х',
  y: 'у',
};
const ADDED_WORDS = ['python', 'node', 'js', 'lib', 'dev', 'api', 'utils', 'cli'];

/** Makes another name out of one; returns the same name if this kind does not apply to it. */
type Make = (name: string) => string;

const atLetter = (change: (name: string, at: number) => string): Make => {
  return (name) => change(name, integer(random, 0, name.length - 1));
};

const kinds: Record<string, Make> = {
  'swapped letters': atLetter(
    (name, at) => name.slice(0, at) + reversed(name.slice(at, at + 2)) + name.slice(at + 2),
  ),
  'missing letter': atLetter((name, at) => name.slice(0, at) + name.slice(at + 1)),
  'doubled letter': atLetter((name, at) => name.slice(0, at + 1) + name.slice(at)),
  separator: (name) => name.replaceAll(SEPARATOR, () => pick(random, ['', '-', '_', '.'])),
  plural: (name) => (name.endsWith('s') ? name.slice(0, -1) : `${name}s`),
  'homoglyph, one letter': atLetter(
    (name, at) => name.slice(0, at) + homoglyphs(name.slice(at, at + 1)) + name.slice(at + 1),
  ),
  'homoglyphs, all letters': homoglyphs,
  'swapped words': (name) => {
    const words = name.split('-');
    return [...words.slice(1), ...words.slice(0, 1)].join('-');
  },
  'added word': (name) => {
    const word = pick(random, ADDED_WORDS);
    return random() < 0.5 ? `${word}-${name}` : `${name}-${word}`;
  },
};

function reversed(text: string): string {
  return Array.from(text).reverse().join('');
}

function homoglyphs(text: string): string {
  return text.replaceAll(/./g, (letter) => GLYPHS[letter] ?? letter);
}

/** Makes a name of a kind that does not exist. */
function makeName(
  make: Make,
  names: readonly string[],
  existing: ReadonlySet<string>,
): [made: string, original: string] {
  for (;;) {
    const original = pick(random, names);
    const made = make(original);
    if (made !== original && made !== '' && !existing.has(made)) return [made, original];
  }
}

async function measure(client: Client): Promise<void> {
  const names = bundledPackages().map(({ name }) => name);
  const existing = new Set(names);
  const finds = async (name: string, limit: number, original: string) => {
    const { structuredContent } = await client.callTool({
      name: 'similar_packages',
      arguments: { name, limit },
    });
    const { results } = structuredContent as { results: { name: string }[] };
    return results.some((found) => found.name === original);
  };
  const rows = Object.entries(kinds).map(([kind, make]) => ({
    kind,
    make,
    asked: 0,
    found: 0,
    later: 0,
    example: '',
  }));
  for (let i = 0; i < COUNT; i++) {
    const row = rows[i % rows.length] as (typeof rows)[number];
    const [made, original] = makeName(row.make, names, existing);
    row.asked++;
    if (await finds(made, LIMIT, original)) row.found++;
    else if (await finds(made, MAX_LIMIT, original)) row.later++;
    else row.example = `${made} for ${original}`;
  }
  for (const { kind, asked, found, later, example } of rows) {
    const percent = ((found * 100) / asked).toFixed(1);
    console.log(
      `${kind.padEnd(24)} ${percent.padStart(5)} % of ${asked}; after the tenth: ${later}; missed: ${example}`,
    );
  }
}

await withEngines(async ({ elasticsearch }) => {
  const service = await ServerProcess.start('dist/main.js', uncachedEnv(elasticsearch.url));
  const client = new Client({ name: 'bench', version: '1.0.0' });
  try {
    while (!(await fetch(`${service.url}/health`)).ok) await pause(200);
    const args = ['dist/mcp/mcp.js', '--url', service.url];
    await client.connect(new StdioClientTransport({ command: process.execPath, args }));
    await measure(client);
  } finally {
    await client.close();
    await service.stop();
  }
});
