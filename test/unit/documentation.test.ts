import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import GithubSlugger from 'github-slugger';
import { marked, type Token, type Tokens } from 'marked';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const MAX_LINES = 150;
const MAX_README_LINES = 120;
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

/** Folders and files that use environment variables. */
const SOURCES = ['src', 'scripts', 'test', 'bench', 'datasets', 'deploy', 'docker-compose.yml', 'Dockerfile'];

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

function filesIn(path: string): string[] {
  const entries = readdirSync(join(ROOT, path), { withFileTypes: true, recursive: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length));
}

/** The text of all files, of those that are text. */
function textOf(paths: readonly string[]): string {
  const files = paths.flatMap((path) => (/\.\w+$|file$/.test(path) ? [path] : filesIn(path)));
  return files
    .filter((path) => !path.endsWith('.gz'))
    .map(read)
    .join('\n');
}

function tokensOf<T extends Token>(path: string, ...types: T['type'][]): T[] {
  const found: T[] = [];
  void marked.walkTokens(marked.lexer(read(path)), (token) => {
    if (types.includes(token.type)) found.push(token as T);
  });
  return found;
}

function anchorsOf(path: string): string[] {
  const slugger = new GithubSlugger();
  return tokensOf<Tokens.Heading>(path, 'heading').map(({ text }) => slugger.slug(text.replaceAll('`', '')));
}

/** What a document shows as code. */
function codeOf(path: string): string[] {
  return tokensOf<Tokens.Code | Tokens.Codespan>(path, 'code', 'codespan').map(({ text }) => text);
}

function matches(texts: readonly string[], pattern: RegExp): Set<string> {
  return new Set(texts.flatMap((text) => [...text.matchAll(pattern)].map((match) => match[1] ?? match[0])));
}

/** Entries of a set that another one lacks. */
function missing(found: Iterable<string>, known: ReadonlySet<string>): string[] {
  return [...found].filter((item) => !known.has(item));
}

describe('The documentation', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const variables = matches([textOf(SOURCES)], /\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/g);

  for (const path of DOCUMENTS) {
    describe(path, () => {
      it('links to files and headings that exist', () => {
        const dead = tokensOf<Tokens.Link | Tokens.Image>(path, 'link', 'image')
          .map(({ href }) => href)
          .filter((href) => !/^https?:/.test(href))
          .filter((href) => {
            const [target = '', anchor] = href.split('#');
            const file = target === '' ? path : join(dirname(path), target);
            if (!existsSync(join(ROOT, file))) return true;
            return anchor !== undefined && !anchorsOf(file).includes(anchor);
          });
        expect(dead).to.deep.equal([]);
      });

      it('names commands that exist', () => {
        const commands = matches(codeOf(path), /\bnpm run (?:--silent )?([a-z][\w:-]*)/g);
        expect(missing(commands, new Set(Object.keys(scripts)))).to.deep.equal([]);
      });

      it('names files that exist', () => {
        const files = matches(
          codeOf(path),
          /(?<![\w./-])((?:src|test|docs|deploy|mappings|bench|scripts|data|datasets|fixtures)\/[\w./-]*\w)/g,
        );
        expect([...files].filter((file) => !existsSync(join(ROOT, file)))).to.deep.equal([]);
        const suites = matches(
          tokensOf<Tokens.Codespan>(path, 'codespan').map(({ text }) => text),
          /^((?:unit|integration|faults|browser|containers)\/[\w/-]+)$/g,
        );
        const absent = [...suites].filter(
          (suite) =>
            !existsSync(join(ROOT, `test/${suite}.test.ts`)) && !existsSync(join(ROOT, `test/${suite}`)),
        );
        expect(absent).to.deep.equal([]);
      });

      it('names environment variables that exist', () => {
        const named = matches(codeOf(path), /\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/g);
        expect(missing(named, variables)).to.deep.equal([]);
      });
    });
  }

  it('is short: the README and each guide have few lines, and no line is too wide for a terminal', () => {
    const tooLong = ['README.md', ...GUIDES].filter(
      (path) =>
        read(path).trimEnd().split('\n').length > (path === 'README.md' ? MAX_README_LINES : MAX_LINES),
    );
    expect(tooLong).to.deep.equal([]);
    const tooWide = DOCUMENTS.flatMap((path) =>
      read(path)
        .split('\n')
        .flatMap((line, i) => (line.length > MAX_WIDTH ? [`${path}:${i + 1}`] : [])),
    );
    expect(tooWide).to.deep.equal([]);
  });

  it('describes every variable of the configuration', () => {
    const configured = matches([read('src/config.ts')], /^ {2}([A-Z][A-Z_]+): /gm);
    expect(configured).to.include.keys('PORT', 'CHANGES_RETENTION');
    const described = matches(codeOf('docs/configuration.md'), /\b[A-Z][A-Z_]+\b/g);
    expect(missing(configured, described)).to.deep.equal([]);
  });

  it('quotes messages that the program has', () => {
    const program = textOf(['src', 'scripts', 'datasets']).replace(/\\'/g, "'");
    const rows = tokensOf<Tokens.Table>('docs/troubleshooting.md', 'table').flatMap((table) => table.rows);
    const quoted = rows
      .map(([first]) => first?.tokens.find(({ type }) => type === 'codespan'))
      .filter(Boolean);
    expect(quoted).to.have.length.greaterThan(10);
    const unknown = quoted
      .flatMap((token) => (token as Tokens.Codespan).text.split('…'))
      .map((part) => part.trim())
      .filter((part) => part.length > 3 && !program.includes(part));
    expect(unknown).to.deep.equal([]);
  });
});
