import * as z from 'zod';
import { parseJson } from './parse-json.js';

/** Parses JSON. `jsonText.pipe(schema)` also checks the parsed value. */
export const jsonText = z.string().transform((text, context): unknown => {
  const value = parseJson(text);
  if (value === undefined) context.addIssue('is not JSON');
  return value;
});
