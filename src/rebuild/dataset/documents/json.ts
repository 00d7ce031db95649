import { JSONParser, TokenType, type ParsedTokenInfo } from '@streamparser/json';
import { DatasetError } from '../dataset-error.js';
import { InterruptedError } from './document.js';

/** A value of a document. */
export interface JsonMember {
  /** The path of the object or array that has it: member names separated by dots; empty for the document itself. */
  parent: string;
  /** Its name in the object, or its index in the array. */
  key: string | number;
  value: unknown;
}

/** The kinds of objects and arrays, by their paths. */
export type Containers = Map<string, 'array' | 'object'>;

/** JSON is a tenth of its size in gzip. */
export const JSON_HEADERS = { Accept: 'application/json', 'Accept-Encoding': 'gzip' };

/** White space and the byte order mark, as bytes. */
const BLANK = [0x20, 0x09, 0x0a, 0x0d, 0xef, 0xbb, 0xbf];
const LESS_THAN = 0x3c;

/**
 * Reads some values of a JSON document, in batches, without holding the others.
 * @param paths of these values: member names separated by dots; the last one may be `*`, which stands for all members.
 * @param containers is filled with those of the values, also if they are empty.
 * @throws {InterruptedError} if the document is cut off. @throws {DatasetError} naming the byte if it is not JSON.
 */
export async function* readJson(
  source: AsyncIterable<Buffer>,
  paths: readonly string[],
  containers: Containers = new Map(),
): AsyncGenerator<JsonMember[]> {
  const parser = new JSONParser({ paths: paths.map((path) => `$.${path}`), keepStack: false });
  let found: JsonMember[] = [];
  parser.onValue = ({ value, key, stack }) => {
    const names = stack.slice(1).map((element) => element.key);
    found.push({ parent: names.join('.'), key: key as string | number, value });
  };
  const watcher = new ContainerWatcher(paths, containers);
  parser.onToken = (token) => watcher.see(token);
  let isStarted = false;
  for await (const chunk of source) {
    const first: number | undefined = isStarted ? undefined : chunk.find((byte) => !BLANK.includes(byte));
    if (first === LESS_THAN) throw new DatasetError('expected JSON, but this is an HTML or XML page');
    isStarted ||= first !== undefined;
    try {
      parser.write(chunk);
    } catch (cause) {
      throw new DatasetError(`expected JSON, but it is malformed after byte ${watcher.offset}`, { cause });
    }
    yield found;
    found = [];
  }
  if (!isStarted) throw new InterruptedError('expected JSON, but the document is empty');
  if (!parser.isEnded) throw new InterruptedError(`the JSON is cut off after byte ${watcher.offset}`);
  if (containers.get('') === undefined) throw new DatasetError('expected a JSON object or array');
}

/** Finds out what the containers of values are: the parser does not tell those that are empty. */
class ContainerWatcher {
  /** Position of the last token, in bytes. */
  offset = 0;
  readonly #parents: ReadonlySet<string>;
  readonly #maxDepth: number;
  /** The last text at each depth: the name of the member whose value begins. */
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

  see({ token, value, offset }: ParsedTokenInfo): void {
    this.offset = offset;
    if (token === TokenType.STRING) {
      if (this.#depth <= this.#maxDepth) this.#names[this.#depth] = value;
    } else if (token === TokenType.LEFT_BRACE || token === TokenType.LEFT_BRACKET) {
      if (this.#depth <= this.#maxDepth) this.#open(token === TokenType.LEFT_BRACE ? 'object' : 'array');
      this.#depth++;
    } else if (token === TokenType.RIGHT_BRACE || token === TokenType.RIGHT_BRACKET) this.#depth--;
  }

  #open(kind: 'array' | 'object'): void {
    const path = this.#names.slice(1, this.#depth + 1).join('.');
    if (this.#parents.has(path)) this.found.set(path, kind);
  }
}
