import { codePoints } from '../src/code-points.js';
import { integer, pick, seededRandom } from '../test/support/random.js';

const KINDS = ['exact', 'prefix', 'inside', 'broad', 'none'] as const;
export type Kind = (typeof KINDS)[number];

export interface Query {
  kind: Kind;
  q: string;
}

/**
 * As many queries of each kind, made of real names: whole ones, beginnings and inner parts of 4 to 8 characters, 2 or 3
 * characters from anywhere, and strings that no name contains.
 */
export function makeQueries(names: readonly string[], perKind: number): Query[] {
  const random = seededRandom(7);
  const part = (min: number, max: number, inside: boolean) => {
    for (;;) {
      const characters = codePoints(pick(random, names));
      const length = integer(random, min, max);
      const from = inside ? integer(random, 1, Math.max(1, characters.length - length)) : 0;
      const text = characters.slice(from, from + length).join('');
      if (text.trim().length === length) return text;
    }
  };
  const makers: Record<Kind, () => string> = {
    exact: () => pick(random, names),
    prefix: () => part(4, 8, false),
    inside: () => part(4, 8, true),
    broad: () => part(2, 3, random() < 0.5),
    none: () => `${part(3, 6, true)}~${integer(random, 0, 1e9).toString(36)}`,
  };
  return Array.from({ length: perKind }, () => KINDS.map((kind) => ({ kind, q: makers[kind]() }))).flat();
}
