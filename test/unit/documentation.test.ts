import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import GithubSlugger from 'github-slugger';
import { marked, type Token, type Tokens } from 'marked';
import packageJson from '../../package.json' with { type: 'json' };
import commands from '../../scripts/commands.json' with { type: 'json' };
import { VARIABLES } from '../../src/config/config.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const MAX_LINES = 150;
const MAX_README_LINES = 80;
/** Of the README, the guides without their evidence, and CONTRIBUTING.md, as `wc -w` counts them. */
const MAX_WORDS = 12_000;
const MAX_WIDTH = 140;

const GUIDES = filesIn('docs').filter((path) => path.endsWith('.md'));
const DOCUMENTS = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'SECURITY.md',
  'deploy/runbook.md',
  ...GUIDES,
];

/** Read by Docker Compose and by Node itself. */
const READ_BY_OTHERS = ['COMPOSE_PROFILES', 'NODE_EXTRA_CA_CERTS'];

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

function filesIn(path: string): string[] {
  const entries = readdirSync(join(ROOT, path), { withFileTypes: true, recursive: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length));
}

function exists(path: string): boolean {
  return existsSync(join(ROOT, path));
}

function tokensOf<T extends Token>(markdown: string, ...types: T['type'][]): T[] {
  const found: T[] = [];
  void marked.walkTokens(marked.lexer(markdown), (token) => {
    if (types.includes(token.type)) found.push(token as T);
  });
  return found;
}

function codeSpansOf(markdown: string): string[] {
  return tokensOf<Tokens.Codespan>(markdown, 'codespan').map(({ text }) => text);
}

/** What a document shows as code. */
function codeOf(markdown: string): string[] {
  return tokensOf<Tokens.Code | Tokens.Codespan>(markdown, 'code', 'codespan').map(({ text }) => text);
}

function matches(texts: readonly string[], pattern: RegExp): string[] {
  return [
    ...new Set(texts.flatMap((text) => [...text.matchAll(pattern)].map((match) => match[1] ?? match[0]))),
  ];
}

/** The items that `known` lacks. */
function missing(found: readonly string[], known: readonly string[]): string[] {
  return found.filter((item) => !known.includes(item));
}

/** Words of sources that may be the name of an environment variable. */
function namesInSources(): string[] {
  const files = ['src', 'dev', 'scripts', 'test/support', 'test/faults', 'test/deploy', 'test/browser'];
  const sources = files.flatMap(filesIn).filter((path) => /\.(ts|mjs|json|sh)$/.test(path));
  const compose = ['docker-compose.yml', 'deploy/siblings.yml'];
  return [...matches([...sources, ...compose].map(read), /\b[A-Z][A-Z0-9_]+\b/g), ...READ_BY_OTHERS];
}

/** The environment variables that a document names: with an underscore, with a value, or in a table of variables. */
function variablesIn(markdown: string): string[] {
  const tables = tokensOf<Tokens.Table>(markdown, 'table').filter(
    ({ header }) => header[0]?.text === 'variable',
  );
  const firstCells = tables.flatMap(({ rows }) => rows.map(([first]) => first?.text ?? ''));
  return [
    ...matches(codeOf(markdown), /\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|(?<![\w-])[A-Z][A-Z0-9]+(?==)/g),
    ...firstCells.flatMap(codeSpansOf),
  ];
}

/** The links of a document that lead nowhere, as seen from its folder. */
function deadLinksIn(path: string): string[] {
  const links = tokensOf<Tokens.Link | Tokens.Image>(read(path), 'link', 'image').map(({ href }) => href);
  return links.filter((href) => {
    if (/^https?:/.test(href)) return false;
    const [target = '', anchor] = href.split('#');
    const file = target === '' ? path : join(dirname(path), target);
    if (!exists(file)) return true;
    const slugger = new GithubSlugger();
    const headings = tokensOf<Tokens.Heading>(anchor === undefined ? '' : read(file), 'heading');
    const anchors = headings.map(({ text }) => slugger.slug(text.replaceAll('`', '')));
    return anchor !== undefined && !anchors.includes(anchor);
  });
}

describe('The documentation', () => {
  const known = namesInSources();

  for (const path of DOCUMENTS) {
    describe(path, () => {
      const markdown = read(path);

      it('links to files and headings that exist', () => {
        expect(deadLinksIn(path)).to.deep.equal([]);
      });

      it('names commands that exist', () => {
        // Earlier releases had others.
        const code = path === 'CHANGELOG.md' ? [] : codeOf(markdown);
        const scripts = matches(code, /\bnpm run (?:--silent )?([a-z][\w:-]*)/g);
        expect(missing(scripts, Object.keys(packageJson.scripts))).to.deep.equal([]);
        const tests = matches(code, /\bnpm test -- ([a-z][\w-]*)/g);
        expect(missing(tests, Object.keys(commands.groups.test))).to.deep.equal([]);
      });

      it('names files that exist', () => {
        const files = matches(
          codeOf(markdown),
          /(?<![\w./-])((?:src|test|docs|deploy|mappings|bench|scripts|data|datasets|fixtures)\/[\w./-]*\w)/g,
        );
        expect(files.filter((file) => !exists(file))).to.deep.equal([]);
        const suites = matches(codeSpansOf(markdown), /^((?:unit|integration|faults|browser)\/[\w/-]+)$/g);
        const absent = suites.filter((suite) => !exists(`test/${suite}.test.ts`) && !exists(`test/${suite}`));
        expect(absent).to.deep.equal([]);
      });

      it('names environment variables that exist', () => {
        expect(missing(variablesIn(markdown), known)).to.deep.equal([]);
      });
    });
  }

  it('has short files', () => {
    for (const path of ['README.md', ...GUIDES]) {
      const most = path === 'README.md' ? MAX_README_LINES : MAX_LINES;
      expect(read(path).trimEnd().split('\n'), path).to.have.length.at.most(most);
    }
  });

  it('has no line that is too wide for a terminal', () => {
    for (const path of DOCUMENTS)
      for (const line of read(path).split('\n')) expect(line, path).to.have.length.at.most(MAX_WIDTH);
  });

  it('has at most 12,000 words without the evidence', () => {
    const texts = [
      'README.md',
      'CONTRIBUTING.md',
      ...GUIDES.filter((path) => !path.startsWith('docs/evidence/')),
    ];
    const words = texts.flatMap((path) => read(path).match(/\S+/g) ?? []);
    expect(words).to.have.length.at.most(MAX_WORDS);
  });

  it('describes every variable of the configuration', () => {
    expect(missing(VARIABLES, variablesIn(read('docs/configuration.md')))).to.deep.equal([]);
  });

  it('names what prevents failures of rebuilds as the sources do', () => {
    const sources = filesIn('src').filter((path) => path.endsWith('.ts'));
    const words = sources.flatMap((path) => read(path).match(/\w+/g) ?? []);
    const tables = tokensOf<Tokens.Table>(read('docs/rebuilds.md'), 'table');
    const cells = tables.flatMap(({ rows }) => rows.map(([, second]) => second?.text ?? ''));
    expect(cells).to.have.length.greaterThan(10);
    expect(missing(cells.flatMap(codeSpansOf), words)).to.deep.equal([]);
  });

  it('quotes messages that the program has', () => {
    const sources = ['src', 'dev', 'scripts'].flatMap(filesIn).filter((path) => !path.endsWith('.gz'));
    const program = sources.map(read).join('\n').replace(/\\'/g, "'");
    const tables = tokensOf<Tokens.Table>(read('docs/troubleshooting.md'), 'table');
    const firstCells = tables.flatMap(({ rows }) => rows.map(([first]) => first?.text ?? ''));
    const quoted = firstCells.flatMap((cell) => codeSpansOf(cell).slice(0, 1));
    expect(quoted).to.have.length.greaterThan(10);
    const parts = quoted.flatMap((message) => message.split('…')).map((part) => part.trim());
    expect(parts.filter((part) => part.length > 3 && !program.includes(part))).to.deep.equal([]);
  });
});
