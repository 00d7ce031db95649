import { comparedCharacters, lowerCase, unifySeparators, type NameRule } from '../util/name-rule.js';

/** A part of a name, and whether it matches the query. */
export interface Part {
  text: string;
  found: boolean;
}

/**
 * Splits a name at matches of the query. As in a search, case is ignored. If the name does not contain the query,
 * separators are unified: the service has found the name by its name rule. The parts keep the original letters.
 */
export function highlight(name: string, query: string): Part[] {
  const parts = split(name, query, 'exact');
  return parts.some(({ found }) => found) ? parts : split(name, query, 'pypi');
}

function split(name: string, query: string, rule: NameRule): Part[] {
  const letters = comparedCharacters(rule, name);
  const lower = letters.map((letter) => lowerCase(unifySeparators(rule, letter)));
  const sought = Array.from(lowerCase(unifySeparators(rule, query)));
  const parts: Part[] = [];
  let unmarked = 0;
  const cut = (from: number, to: number, found: boolean) => {
    if (to > from) parts.push({ text: letters.slice(from, to).join(''), found });
  };
  for (let i = 0; sought.length > 0 && i + sought.length <= lower.length;) {
    if (sought.every((letter, j) => letter === lower[i + j])) {
      cut(unmarked, i, false);
      unmarked = i + sought.length;
      cut(i, unmarked, true);
      i = unmarked;
    } else i++;
  }
  cut(unmarked, letters.length, false);
  return parts;
}
