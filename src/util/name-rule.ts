/** The rules by which registries compare names, the values of `NAME_RULE`. `exact` and `lowercase` know no separators. */
export const NAME_RULES = ['exact', 'lowercase', 'pypi', 'crates'] as const;

export type NameRule = (typeof NAME_RULES)[number];

/** What counts as one `-`, in a syntax that JavaScript and Java share. `pypi`: https://peps.python.org/pep-0503/#normalized-names. */
const SEPARATORS: Partial<Record<NameRule, RegExp>> = { pypi: /[-_.]+/g, crates: /_/g };

const IS_ASCII = /^\p{ASCII}*$/u;

/** What unifies the separators in the analysis of an index, on both sides of a comparison. Undefined if the rule knows none. */
export function charFilterOf(rule: NameRule) {
  const pattern = SEPARATORS[rule]?.source;
  return pattern === undefined ? undefined : { type: 'pattern_replace' as const, pattern, replacement: '-' };
}

/** A name, or a part of one, with the separators that searches compare. Its case is left to the index. */
export function unifySeparators(rule: NameRule, text: string): string {
  const pattern = SEPARATORS[rule];
  return pattern === undefined ? text : text.replace(pattern, '-');
}

/**
 * The form of a name that all its spellings share: names with one canonical form are one package. The twin of the index's analysis,
 * except for letters that Unicode has added since the release of Elasticsearch's Java.
 */
export function canonicalName(rule: NameRule, name: string): string {
  return rule === 'exact' ? name : lowerCase(unifySeparators(rule, name));
}

/** Lower case by code point, like Lucene: without context, so that a final sigma is any other, and `İ` is `i`. */
export function lowerCase(text: string): string {
  return IS_ASCII.test(text) ? text.toLowerCase() : Array.from(text, lowerCaseOf).join('');
}

function lowerCaseOf(codePoint: string): string {
  const [first = codePoint] = codePoint.toLowerCase();
  return first;
}

/** The parts of a text that are one character (code point) each where names are compared: a run of separators may be one. */
export function comparedCharacters(rule: NameRule, text: string): string[] {
  const pattern = SEPARATORS[rule];
  return pattern === undefined
    ? Array.from(text)
    : (text.match(new RegExp(`${pattern.source}|.`, 'gsu')) ?? []);
}
