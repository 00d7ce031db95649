import {
  columnOf,
  fieldOf,
  FIELDS,
  withOptional,
  type OptionalField,
  type PackageEntry,
} from '../../snapshot/package-fields.js';
import { quote } from '../../util/reason-text.js';
import { codePoints } from '../../util/unicode.js';
import { DatasetError } from '../fetch/dataset-error.js';
import { NOT_UTF8, REPLACEMENT } from '../readers/text-lines.js';
import type { Item, ListedPackage } from './list-format.js';

/** Version of a package whose version is missing or empty. */
const DEFAULT_VERSION = 'latest';

/** Characters that cannot be seen in a name: a package would look like another one. */
const HAS_INVISIBLE = /^\s|\s$|[\p{Cc}\p{Cf}]/u;

/**
 * In a CSV, a stray quote joins all lines up to the next quote into one value. A line break in a value is therefore
 * rejected.
 */
const HAS_LINE_BREAK = /[\n\r]/;

/**
 * URLs with other schemes, such as `javascript:`, would become links on pages that show the packages. URL parsers drop
 * or encode control characters and white space at the ends: clients would follow another URL than the one they saw.
 */
const IS_HTTP = /^https?:\/\/\P{Cc}*[^\s\p{Cc}]$/iu;

/**
 * Encodings of the characters that `{+name}` keeps: `/`, `@` and `+`. A path may contain them (RFC 3986, section 3.3).
 */
const ALLOWED_IN_PATH = /%(?:2F|40|2B)/g;

/**
 * Texts that `encodeURIComponent` returns unchanged, such as most names. This test takes half as long as
 * `encodeURIComponent`.
 */
const IS_ENCODED = /^[\w.~!*'()-]*$/;

/**
 * URL parsers resolve the path segments `.` and `..`, so the link would lead to another page. Writing `.` as `%2E`
 * would not prevent this.
 */
const HAS_DOT_SEGMENT = /^[^?#]*\/\.{1,2}([/?#]|$)/;

/** Maximum length of cleaned prose, in code points. */
const MAX_PROSE = 300;

const BLANKS = /[\p{White_Space}\p{Cc}]+/gu;

const ELLIPSIS = '…';

/** A package or a weight is invalid. The message gives the reason. */
class BadRowError extends DatasetError {}

/** Checks each package by itself (not against the others), and numbers it. */
export class PackageCheck {
  /** Number of items so far. If the list has no numbers, this is the number of the current package. */
  #position = 0;
  #isNumbered: boolean | undefined;
  /**
   * Optional fields that some package has. A package without one of these fields gets the field's default, if the field
   * has a default.
   */
  readonly optionalFields = new Set<OptionalField>();

  /** The URL template, split into its literal parts and its placeholders (`{name}` or `{+name}`). */
  readonly #template: readonly string[] | undefined;

  /** @param urlTemplate `https://…/{name}`, for packages without a URL. */
  constructor(urlTemplate: string | undefined) {
    this.#template = urlTemplate?.split(/(\{\+?name\})/);
  }

  /** Whether numbers come from the list; otherwise they are positions. */
  get isNumbered(): boolean {
    return this.#isNumbered === true;
  }

  /** @returns the package, or the reason why it cannot be used. An invalid item takes up a position, too. */
  read(item: Item): PackageEntry | string {
    this.#position++;
    if ('reason' in item) return item.reason;
    return orReason(() => this.#toEntry(item));
  }

  #toEntry(item: ListedPackage): PackageEntry {
    const no = this.#numberOf(item.no);
    const name = nameOf(item.name, 'name');
    assertOneLine(name, 'name');
    if (HAS_INVISIBLE.test(name))
      throw new BadRowError(`name ${quote(name)} has white space at an end, or an invisible character`);
    const version = textOf(item.version, 'version') || DEFAULT_VERSION;
    assertOneLine(version, 'version');
    assertLength(version, 'version', FIELDS.version.maxBytes);
    const url = this.urlOf(name, textOf(item.url, 'url'));
    const entry = withOptional<PackageEntry>({ no, name, version, url }, (field) => {
      const value = optionalValue(item[field], field);
      if (value !== undefined) this.optionalFields.add(field);
      return value;
    });
    const strict = Object.values({ ...entry, description: '' });
    if (item.isLossy === true && strict.some((value) => String(value).includes(REPLACEMENT)))
      throw new BadRowError(NOT_UTF8);
    return entry;
  }

  /** The first package decides whether the list has numbers. */
  #numberOf(value: unknown): number {
    const hasNumber = value !== undefined && value !== null;
    this.#isNumbered ??= hasNumber;
    if (!this.#isNumbered && hasNumber)
      throw new BadRowError('there is a package_no, but the first package has none');
    return this.#isNumbered ? wholeNumber(textOf(value, 'package_no'), 'package_no', 1) : this.#position;
  }

  /** The URL of a package. @param given the URL in the list; empty if there is none. @throws {BadRowError} */
  urlOf(name: string, given = ''): string {
    if (given === '') return this.#fromTemplate(name);
    assertLength(given, 'url', FIELDS.url.maxBytes);
    if (URL.canParse(given) && IS_HTTP.test(given)) return given;
    throw new BadRowError(
      `url ${quote(given)} is not an absolute http(s) URL without control characters and white space at its ends`,
    );
  }

  /**
   * The URL made from the template. It is not parsed: the template is a valid URL, and an encoded name keeps it valid.
   */
  #fromTemplate(name: string): string {
    if (this.#template === undefined) {
      throw new BadRowError('url is empty, and PACKAGE_URL_TEMPLATE is not set');
    }
    const encoded = IS_ENCODED.test(name) ? name : encodeURIComponent(name);
    let url = '';
    for (const part of this.#template) {
      if (part === '{name}') url += encoded;
      else if (part === '{+name}') url += encoded.replaceAll(ALLOWED_IN_PATH, decodeURIComponent);
      else url += part;
    }
    assertLength(url, 'url made from PACKAGE_URL_TEMPLATE', FIELDS.url.maxBytes);
    if (url.includes('/.') && HAS_DOT_SEGMENT.test(url)) {
      throw new BadRowError(
        `name ${quote(name)} gives a url with a \`.\` or \`..\` path segment: ${quote(url)}`,
      );
    }
    return url;
  }
}

/** Calls `read`. @returns its result, or the reason if the row is invalid. */
export function orReason<T>(read: () => T): T | string {
  try {
    return read();
  } catch (error) {
    if (error instanceof BadRowError) return error.message;
    throw error;
  }
}

/** @throws {BadRowError} unless a value is a name. */
export function nameOf(value: unknown, column: string): string {
  if (typeof value !== 'string') {
    const found = value === undefined ? 'it is missing' : describe(value);
    throw new BadRowError(`${column} is not a string: ${found}`);
  }
  const name = textOf(value, column);
  if (name === '') throw new BadRowError(`${column} is empty`);
  assertLength(name, column, FIELDS.name.maxBytes);
  return name;
}

/** The value of an optional field, undefined if there is none. @throws {BadRowError} */
export function optionalValue(value: unknown, name: OptionalField): number | string | undefined {
  if (value === undefined || value === null) return undefined;
  const field = fieldOf(name);
  const column = columnOf(name);
  if (field.type === 'number') return weightOf(value, column);
  if (field.type === 'prose') return cleanProse(value) || undefined;
  const text = textOf(value, column);
  assertOneLine(text, column);
  assertLength(text, column, field.maxBytes);
  return text === '' ? undefined : text;
}

/**
 * A weight: a whole number from 0 to 2^53 − 1; 0 if the value is missing or empty.
 * @throws {BadRowError} if the value is anything else.
 */
export function weightOf(value: unknown, column: string): number {
  return wholeNumber(textOf(value, column) || '0', column, 0);
}

/**
 * The text of an optional value, which may be a string or a number; empty if the value is missing.
 * @throws {BadRowError} if the value has another type, or a lone surrogate.
 */
export function textOf(value: unknown, column: string): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'number') return String(value);
  if (typeof value !== 'string') {
    throw new BadRowError(`${column} is neither a string nor a number: ${describe(value)}`);
  }
  // JSON can contain an escaped lone surrogate. UTF-8 cannot.
  if (!value.isWellFormed()) throw new BadRowError(`${column} has half a surrogate pair: ${quote(value)}`);
  return value;
}

/**
 * A value as JSON. Objects and arrays within it are abbreviated, because writing deep nesting could overflow the stack.
 */
function describe(value: unknown): string {
  const member = (key: string, one: unknown) =>
    key !== '' && typeof one === 'object' && one !== null ? '…' : one;
  return quote(JSON.stringify(value, member));
}

function assertOneLine(text: string, column: string): void {
  if (!HAS_LINE_BREAK.test(text)) return;
  throw new BadRowError(`${column} has a line break: there may be a stray quote in this line`);
}

/** A UTF-16 code unit has at most three bytes in UTF-8, so the bytes of short texts need not be counted. */
function assertLength(text: string, column: string, bytes: number): void {
  if (text.length * 3 > bytes && Buffer.byteLength(text) > bytes) {
    throw new BadRowError(`${column} is longer than ${bytes} bytes`);
  }
}

/**
 * A whole number that is written in digits without leading zeros.
 * @throws {BadRowError} for any other text, or if the number is below `min` or above 2^53 − 1.
 */
function wholeNumber(text: string, column: string, min: number): number {
  const value = Number(text);
  if (/^(0|[1-9]\d*)$/.test(text) && Number.isSafeInteger(value) && value >= min) return value;
  throw new BadRowError(
    `${column} ${quote(text)} is not a number from ${min} to ${Number.MAX_SAFE_INTEGER} in digits without leading zeros`,
  );
}

/**
 * Cleans a text that is only shown, such as a description. Runs of white space and control characters become one space,
 * and half a surrogate pair becomes U+FFFD. A text that is too long is cut at its last space, or within a word if it
 * has no space, so that it fits together with the `…` at its end. Cleaning a cleaned text does not change it.
 * @returns empty if there is no text: values that are not strings count as none.
 */
export function cleanProse(value: unknown): string {
  if (typeof value !== 'string') return '';
  const text = value.toWellFormed().replace(BLANKS, ' ').trim();
  if (text.length <= MAX_PROSE) return text;
  // No code point has more than two code units.
  const characters = codePoints(text.slice(0, 2 * (MAX_PROSE + 1)));
  if (characters.length <= MAX_PROSE) return text;
  const space = characters.lastIndexOf(' ', MAX_PROSE - 1);
  return characters.slice(0, space === -1 ? MAX_PROSE - 1 : space).join('') + ELLIPSIS;
}
