import * as z from 'zod';
import { OPTIONAL_FIELDS, type OptionalField } from '../snapshot/package-fields.js';

/** `DATASET_JSON`: the paths of values in a JSON document. A path is a list of member names. */
export interface JsonPaths extends Partial<Record<OptionalField, readonly string[] | undefined>> {
  /** Path of the array or map of packages. An empty path means the document itself. */
  items: readonly string[];
  /** Path of the name in an item. If undefined, the name is the item's key in a map, or the item itself in an array. */
  name?: readonly string[] | undefined;
  version?: readonly string[] | undefined;
  /**
   * Path of the next page's address in a document. If `parameter` is set, `path` leads to a token instead, which is
   * sent as this query parameter.
   */
  next?: { path: readonly string[]; parameter?: string | undefined } | undefined;
  /** Query parameter for the number of a page, split at its dots. It counts up from 1 until a page has no items. */
  pages?: readonly string[] | undefined;
}

const KEYS = ['items', 'name', 'version', ...OPTIONAL_FIELDS, 'next', 'pages'] as const;

/** `key=path`, `next=parameter:path`, or `pages=parameter`. A path is member names separated by dots. */
const PAIR = /^([a-z_]+)=(?:([^:=]+):)?([^.]+(?:\.[^.]+)*)$/;

export const jsonPaths = z.string().transform((text, context) => {
  const paths = parse(text);
  if (paths !== undefined) return paths;
  context.addIssue(
    `must be pairs such as items=data.packages name=id next=links.next, with the keys ${KEYS.join(', ')}`,
  );
  return z.NEVER;
});

/** @returns undefined if the text is malformed. */
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
