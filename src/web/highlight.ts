/** A part of a name, and whether it is what was searched for. */
export interface Part {
  text: string;
  found: boolean;
}

/**
 * Cuts a name where the query is in it, each code point in lower case as the service compares them, so that the parts
 * keep the name's own letters.
 */
export function highlight(name: string, query: string): Part[] {
  const letters = Array.from(name);
  const lower = letters.map(lowerCase);
  const sought = Array.from(query, lowerCase);
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

/** One code point stays one: `İ` is `i`, as it is for the service, and not `i` with a dot of its own. */
function lowerCase(codePoint: string): string {
  const [first = codePoint] = codePoint.toLowerCase();
  return first;
}
