/** The rules by which registries compare names. `exact` and `lowercase` do not unify separators. */
export const NAME_RULES = ['exact', 'lowercase', 'pypi', 'crates'] as const;

export type NameRule = (typeof NAME_RULES)[number];

/**
 * Patterns of the separators that are replaced by one `-`, as in the char filters in `mappings/`. `pypi`:
 * https://peps.python.org/pep-0503/#normalized-names. A single `-` does not match, because it stays the same.
 */
const SEPARATORS: Partial<Record<NameRule, RegExp>> = { pypi: /[-_.]{2,}|[_.]/g, crates: /_/g };

const IS_ASCII = /^\p{ASCII}*$/u;

/** Does not change case, because the index ignores case. */
export function unifySeparators(rule: NameRule, text: string): string {
  const pattern = SEPARATORS[rule];
  return pattern === undefined ? text : text.replace(pattern, '-');
}

/**
 * The canonical form of a name: names with the same canonical form are one package. With `exact`, the canonical form is
 * the name itself, although searches ignore case. With the other rules, it equals the value of `name.lowercase` in the
 * index, except for letters that are newer than the Unicode version of Elasticsearch's Java.
 */
export function canonicalName(rule: NameRule, name: string): string {
  return rule === 'exact' ? name : lowerCase(unifySeparators(rule, name));
}

/**
 * Converts each code point to lower case by itself, like Lucene: `Σ` becomes `σ` even at the end of a word, and `İ`
 * becomes `i`.
 */
export function lowerCase(text: string): string {
  return IS_ASCII.test(text) ? text.toLowerCase() : Array.from(text, lowerCaseOf).join('');
}

function lowerCaseOf(codePoint: string): string {
  const [first = codePoint] = codePoint.toLowerCase();
  return first;
}

/** A compared character is a code point, or separators that are replaced by one `-`. */
export function comparedCharacters(rule: NameRule, text: string): string[] {
  const pattern = SEPARATORS[rule];
  return pattern === undefined
    ? Array.from(text)
    : (text.match(new RegExp(`${pattern.source}|.`, 'gsu')) ?? []);
}
