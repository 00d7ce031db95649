import { quote } from '../../process/reason-text.js';
import { DatasetError } from '../dataset-error.js';

/** @throws {DatasetError} unless the member of a JSON object is a text that can be written. */
export function nameIn(value: unknown, what: string): string {
  if (typeof value === 'string') return wellFormed(value, what);
  throw new DatasetError(`${what} is not a string: ${describe(value)}`);
}

/**
 * The text of an optional member of a JSON object: a version may be written as a number, a number as text.
 * @throws {DatasetError} if it is neither.
 */
export function textIn(value: unknown, what: string): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return wellFormed(value, what);
  throw new DatasetError(`${what} is neither a string nor a number: ${describe(value)}`);
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** JSON can have half a surrogate pair, escaped; UTF-8 cannot. */
function wellFormed(text: string, what: string): string {
  if (text.isWellFormed()) return text;
  throw new DatasetError(`${what} has half a surrogate pair: ${quote(text)}`);
}

function describe(value: unknown): string {
  return value === undefined ? 'it is missing' : quote(JSON.stringify(value));
}
