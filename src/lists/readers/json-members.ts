import { isAscii, isUtf8 } from 'node:buffer';
import { Tokenizer, TokenParser, TokenType, type ParsedTokenInfo } from '@streamparser/json';
import { DatasetError } from '../fetch/dataset-error.js';
import { peek } from '../fetch/decompress.js';
import { InterruptedError } from '../fetch/documents.js';

/** Stands for a dot in the name of a member, in paths. Dots separate the names. */
export const DOT = '\0';

/** A value of a document. */
export interface JsonMember {
  /**
   * Path of the object or array that contains the value: member names separated by dots. Empty for the document itself.
   * `DOT` stands for a dot in a name.
   */
  parent: string;
  /** Name of the value in the object, or its index in the array. */
  key: string | number;
  value: unknown;
  /** Whether the document up to here may have invalid UTF-8, which was decoded as U+FFFD. */
  isLossy: boolean;
}

/** Whether each container of values is an array or an object, by its path. */
export type Containers = Map<string, 'array' | 'object'>;

/** Headers of a request for JSON. Compressed with gzip, a list is a tenth of its size. */
export const JSON_HEADERS = { Accept: 'application/json', 'Accept-Encoding': 'gzip' };

/** Maximum nesting: the parser's time grows with the square of the nesting. */
const MAX_DEPTH = 1000;
/** Maximum size of one value, in bytes. It limits memory. A package with its readme is smaller. */
const MAX_VALUE_BYTES = 4 * 2 ** 20;

/**
 * Reads some values of a JSON document, in batches, without holding the others. If a run of non-ASCII characters in a
 * string begins with U+FEFF, the parser drops this U+FEFF.
 * @param paths of the values: member names separated by dots. `DOT` stands for a dot in a name. The last name may be
 * `*`, which stands for all members.
 * @param containers receives the containers of the values, including empty containers.
 * @throws {InterruptedError} if the document is cut off.
 * @throws {DatasetError} if it is not JSON, is nested too deeply, or has a value that is too large.
 */
export async function* readJson(
  source: AsyncIterable<Buffer>,
  paths: readonly string[],
  containers: Containers = new Map(),
): AsyncGenerator<JsonMember[]> {
  const { start, chunks } = await peek(source);
  // `trimStart` also removes a byte order mark.
  const beginning = start.toString().trimStart();
  if (beginning.startsWith('<')) throw new DatasetError('expected JSON, but this is an HTML or XML page');
  const tokenizer = new Tokenizer();
  const parser = new TokenParser({ paths: paths.map((path) => `$.${path}`), keepStack: false });
  parser.onEnd = () => {
    if (!tokenizer.isEnded) tokenizer.end();
  };
  const swapped = new Map<unknown, string>();
  for (const name of paths.flatMap((path) => path.split('.'))) {
    const original = name.replaceAll(DOT, '.');
    if (name !== original) swapped.set(name, original).set(original, name);
  }
  let found: JsonMember[] = [];
  /** The object or array that contains the latest value. `parent` is its path. */
  let container: unknown;
  let parent = '';
  parser.onValue = ({ value, key, stack }) => {
    const innermost = stack.at(-1);
    if (innermost !== container) {
      container = innermost;
      parent = stack
        .slice(1)
        .map((element) => element.key)
        .join('.');
    }
    const keyInDocument = swapped.get(key) ?? (key as string | number);
    found.push({ parent, key: keyInDocument, value: swapped.get(value) ?? value, isLossy });
  };
  const watcher = new ContainerWatcher(paths, containers);
  tokenizer.onToken = (token) => {
    // The parser cannot select names with dots. All strings that may be such names are changed, and changed back above.
    const other = watcher.isShallow ? swapped.get(token.value) : undefined;
    const seen = other === undefined ? token : ({ ...token, value: other } as ParsedTokenInfo);
    watcher.see(seen);
    parser.write(seen);
  };
  const decoder = new TextDecoder();
  let isLossy = false;
  let isSplit = false;
  let bytes = 0;
  for await (const chunk of chunks) {
    try {
      // Unless the previous chunk ended in ASCII, the decoder may hold the first bytes of a character.
      const text = isAscii(chunk) && !isSplit ? chunk : decoder.decode(chunk, { stream: true });
      isSplit = (chunk.at(-1) ?? 0) >= 0x80;
      if (typeof text === 'string' && text.includes('\uFFFD')) {
        // A valid chunk may contain U+FFFD itself. If the previous chunk ended in an incomplete character, the decoder
        // adds another U+FFFD, so the text differs.
        isLossy ||= !isUtf8(chunk) || text !== chunk.toString();
      }
      tokenizer.write(text);
    } catch (cause) {
      if (cause instanceof DatasetError) throw cause;
      throw new DatasetError(`expected JSON, but it is malformed after byte ${watcher.offset}`, { cause });
    }
    bytes += chunk.length;
    if (bytes - watcher.shallowOffset > MAX_VALUE_BYTES) {
      throw new DatasetError(
        `the value after byte ${watcher.shallowOffset} is larger than ${MAX_VALUE_BYTES} bytes`,
      );
    }
    yield found;
    found = [];
  }
  const isCut = !parser.isEnded;
  if (isCut && beginning === '') throw new InterruptedError('expected JSON, but the document is empty');
  if (isCut) throw new InterruptedError(`the JSON is cut off after byte ${watcher.offset}`);
  if (containers.get('') === undefined) throw new DatasetError('expected a JSON object or array');
}

/** Records whether each container of values is an array or an object. The parser does not report empty containers. */
class ContainerWatcher {
  /** Byte offset of the last token. `shallowOffset` ignores tokens nested deeper than the members of the containers. */
  offset = 0;
  shallowOffset = 0;
  readonly #parents: ReadonlySet<string>;
  readonly #maxDepth: number;
  /** The last string at each depth. When a member's value begins, the string at its depth is the member's name. */
  readonly #names: unknown[] = [];
  #depth = 0;

  constructor(
    paths: readonly string[],
    private readonly found: Containers,
  ) {
    const parents = paths.map((path) => path.split('.').slice(0, -1));
    this.#parents = new Set(['', ...parents.map((names) => names.join('.'))]);
    this.#maxDepth = Math.max(...parents.map((names) => names.length));
  }

  /** Whether the next token may be a name in a path, or a value at a path. */
  get isShallow(): boolean {
    return this.#depth <= this.#maxDepth + 1;
  }

  see({ token, value, offset }: ParsedTokenInfo): void {
    this.offset = offset;
    if (this.isShallow) this.shallowOffset = offset;
    if (token === TokenType.STRING) {
      if (this.#depth <= this.#maxDepth) this.#names[this.#depth] = value;
    } else if (token === TokenType.LEFT_BRACE || token === TokenType.LEFT_BRACKET) {
      if (this.#depth <= this.#maxDepth) this.#open(token === TokenType.LEFT_BRACE ? 'object' : 'array');
      if (++this.#depth > MAX_DEPTH) throw new DatasetError(`the JSON is nested more than ${MAX_DEPTH} deep`);
    } else if (token === TokenType.RIGHT_BRACE || token === TokenType.RIGHT_BRACKET) this.#depth--;
  }

  #open(kind: 'array' | 'object'): void {
    const path = this.#names.slice(1, this.#depth + 1).join('.');
    if (this.#parents.has(path)) this.found.set(path, kind);
  }
}
