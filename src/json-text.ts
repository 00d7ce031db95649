import { z } from 'zod';

/** Parses JSON: `jsonText.pipe(schema)` checks its value. */
export const jsonText = z.string().transform((text, context): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    context.addIssue('is not JSON');
    return z.NEVER;
  }
});
