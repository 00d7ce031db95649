import { integer, pick, seededRandom } from '../test/support/random.js';

/** Parts that names of every registry are made of; the rest of the vocabulary is made of syllables. */
const COMMON = [
  'lib', 'dev', 'core', 'utils', 'util', 'plugin', 'client', 'server', 'api', 'cli', 'js', 'py', 'go', 'rust', 'node', 'data', 'web', 'app',
  'test', 'tools', 'config', 'auth', 'parser', 'loader', 'http', 'json', 'xml', 'sql', 'db', 'cache', 'queue', 'log', 'doc', 'common', 'base',
  'types', 'react', 'vue', 'perl', 'python', 'ruby', 'java', 'font', 'theme', 'icons', 'ui', 'kit', 'sdk', 'helper', 'stream', 'async', 'fast',
]; // prettier-ignore

const ONSETS = ['b', 'br', 'c', 'ch', 'd', 'dr', 'f', 'fl', 'g', 'gr', 'h', 'j', 'k', 'kr', 'l', 'm', 'n', 'p', 'pl', 'qu', 'r', 's', 'sh', 'st', 't', 'tr', 'v', 'w', 'x', 'z']; // prettier-ignore
const NUCLEI = ['a', 'e', 'i', 'o', 'u', 'y', 'ai', 'ea', 'io', 'ou'];
const CODAS = ['', '', '', 'n', 'r', 's', 'l', 'm', 'x', 'ck', 'nt', 'rd'];

const VOCABULARY = 1500;
const SCOPES = 400;
const SEED = 20_260_101;

/**
 * Endless names like those of a registry, the same in every run: words joined by separators, some scoped
 * (`@scope/name`), dotted, numbered, or in upper case. The n-th name does not depend on how many are taken, so that a
 * smaller dataset is the beginning of a larger one. Names may repeat: the caller makes them unique.
 */
export function* registryNames(): Generator<string, never> {
  const random = seededRandom(SEED);
  const words = [...COMMON];
  while (words.length < VOCABULARY) words.push(word(random));
  const scopes = Array.from({ length: SCOPES }, () => word(random));
  // A few words are in most names, and most words in few.
  const anyWord = () => words[Math.floor(words.length * random() ** 2.5)] as string;
  for (;;) {
    const separator = pick(random, ['-', '-', '-', '-', '-', '.', '_', '']);
    const parts = Array.from({ length: pick(random, [1, 2, 2, 3, 3, 3, 4]) }, anyWord);
    let name = parts.join(separator);
    const kind = random();
    if (kind < 0.15) name = `@${pick(random, scopes)}/${name}`;
    else if (kind < 0.3) name += `${pick(random, ['', '-', '-v', '.'])}${integer(random, 1, 99)}`;
    else if (kind < 0.35) name += `-${integer(random, 0, 9)}.${integer(random, 0, 30)}`;
    else if (kind < 0.4) name = parts.map((part) => part.charAt(0).toUpperCase() + part.slice(1)).join('.');
    yield name;
  }
}

function word(random: () => number): string {
  const syllables = integer(random, 1, 3);
  return Array.from(
    { length: syllables },
    () => pick(random, ONSETS) + pick(random, NUCLEI) + pick(random, CODAS),
  ).join('');
}
