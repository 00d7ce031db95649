import { comparedCharacters, lowerCase, unifySeparators, type NameRule } from '../util/name-rule.js';

/** A part of a name, and whether it matches the query. */
export interface Part {
  text: string;
  found: boolean;
}

/**
 * Splits a name into parts that match words of the query and other parts. As in a search, case is ignored. For a word
 * that the name does not contain, separators are unified: the service has found the name by its name rule. The parts
 * keep the original letters.
 */
export function highlight(name: string, words: readonly string[]): Part[] {
  const found = new Array<boolean>(name.length).fill(false);
  for (const word of words) {
    const exact = matchesOf(name, word, 'exact');
    const matches = exact.length > 0 ? exact : matchesOf(name, word, 'pypi');
    for (const [from, to] of matches) found.fill(true, from, to);
  }
  const parts: Part[] = [];
  for (let from = 0, to = 0; from < name.length; from = to) {
    while (to < name.length && found[to] === found[from]) to++;
    parts.push({ text: name.slice(from, to), found: found[from] === true });
  }
  return parts;
}

/** Where a name contains a word, from and to, in code units. Matches may overlap. */
function matchesOf(name: string, word: string, rule: NameRule): [number, number][] {
  const letters = comparedCharacters(rule, name);
  const lower = letters.map((letter) => lowerCase(unifySeparators(rule, letter)));
  const sought = Array.from(lowerCase(unifySeparators(rule, word)));
  const matches: [number, number][] = [];
  let from = 0;
  for (const [i, letter] of letters.entries()) {
    const to = from + letters.slice(i, i + sought.length).join('').length;
    if (sought.every((one, j) => one === lower[i + j])) matches.push([from, to]);
    from += letter.length;
  }
  return matches;
}
