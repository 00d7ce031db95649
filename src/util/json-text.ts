import { z } from 'zod';

/** Parses JSON: `jsonText.pipe(schema)` checks its value. */
export const jsonText = z.string().transform((text, context): unknown => {
  const value = parseJson(text);
  if (value === undefined) context.addIssue('is not JSON');
  return value;
});

/** @returns undefined if it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
