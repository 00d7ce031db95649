/** The rules by which registries compare names, the values of `NAME_RULE`. `exact` and `lowercase` know no separators. */
export const NAME_RULES = ['exact', 'lowercase', 'pypi', 'crates'] as const;

export type NameRule = (typeof NAME_RULES)[number];

/**
 * Separators that count as one `-`, in a syntax that JavaScript and Java share. `pypi`:
 * https://peps.python.org/pep-0503/#normalized-names. A single `-` does not match: replacing it with `-` would only
 * take time.
 */
const SEPARATORS: Partial<Record<NameRule, RegExp>> = { pypi: /[-_.]{2,}|[_.]/g, crates: /_/g };

const IS_ASCII = /^\p{ASCII}*$/u;

/** The character filter that unifies separators when an index analyzes names and queries. Undefined if the rule knows no separators. */
export function charFilterOf(rule: NameRule) {
  const pattern = SEPARATORS[rule]?.source;
  return pattern === undefined ? undefined : { type: 'pattern_replace' as const, pattern, replacement: '-' };
}

/**
 * Unifies the separators of a name, or of a part of a name, as searches do. Case is not changed: the index ignores it.
 */
export function unifySeparators(rule: NameRule, text: string): string {
  const pattern = SEPARATORS[rule];
  return pattern === undefined ? text : text.replace(pattern, '-');
}

/**
 * The form of a name that all its spellings share: names with the same canonical form are one package. With `exact`,
 * this is the name itself, although searches ignore case. With the other rules, it equals `name.lowercase` of the
 * index, except for letters that Unicode has added since the release of Elasticsearch's Java.
 */
export function canonicalName(rule: NameRule, name: string): string {
  return rule === 'exact' ? name : lowerCase(unifySeparators(rule, name));
}

/** Lower case of each code point by itself, as in Lucene: a final sigma becomes the same letter as any other, and `İ` becomes `i`. */
export function lowerCase(text: string): string {
  return IS_ASCII.test(text) ? text.toLowerCase() : Array.from(text, lowerCaseOf).join('');
}

function lowerCaseOf(codePoint: string): string {
  const [first = codePoint] = codePoint.toLowerCase();
  return first;
}

/** The parts of a text that count as one character each when names are compared: a code point, or a run of separators. */
export function comparedCharacters(rule: NameRule, text: string): string[] {
  const pattern = SEPARATORS[rule];
  return pattern === undefined
    ? Array.from(text)
    : (text.match(new RegExp(`${pattern.source}|.`, 'gsu')) ?? []);
}
