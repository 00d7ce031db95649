import { z } from 'zod';

/** Where things are in a JSON document: `DATASET_JSON`. Paths are member names. */
export interface JsonPaths {
  /** Of the array or map; empty for the document itself. */
  items: readonly string[];
  /** In an item. Undefined: the item itself if it is a string, its key in a map. */
  name?: readonly string[] | undefined;
  version?: readonly string[] | undefined;
  weight?: readonly string[] | undefined;
  /** In the document: of the address of the next page, or of a token that is sent as a parameter of the query. */
  next?: { path: readonly string[]; parameter?: string | undefined } | undefined;
}

const KEYS = ['items', 'name', 'version', 'weight', 'next'] as const;

/** `path`, or `parameter:path` for `next`: member names separated by dots. */
const PAIR = /^([a-z]+)=(?:([^:=]+):)?([^.]+(?:\.[^.]+)*)$/;

/** `DATASET_JSON`: `key=path` pairs, separated by spaces. */
export const jsonPaths = z.string().transform((text, context) => {
  const paths = parse(text);
  if (paths !== undefined) return paths;
  context.addIssue(
    `must be pairs such as items=data.packages name=id next=links.next, with the keys ${KEYS.join(', ')}`,
  );
  return z.NEVER;
});

/** @returns undefined if it is malformed. */
function parse(text: string): JsonPaths | undefined {
  const paths: Partial<Record<(typeof KEYS)[number], string[]>> = {};
  let parameter: string | undefined;
  for (const pair of text.split(' ').filter((part) => part !== '')) {
    const [, written, prefix, path = ''] = PAIR.exec(pair) ?? [];
    const key = KEYS.find((known) => known === written);
    if (key === undefined || paths[key] !== undefined || (prefix !== undefined && key !== 'next'))
      return undefined;
    paths[key] = path.split('.');
    if (key === 'next') parameter = prefix;
  }
  const { items = [], next, ...others } = paths;
  return { items, ...others, next: next && { path: next, parameter } };
}
