/** A package as the API returns it, without `rank`. */
export interface PackageEntry {
  no: number;
  name: string;
  version: string;
  url: string;
}

/** Maximum length of a name, in UTF-8 bytes. */
export const MAX_NAME_BYTES = 512;

/** Bytes that base64 encodes as four characters, without padding. */
const BASE64_UNIT = 3;

/** The JSON of an entry without its braces, members in the order of the contract. */
export function entryMembers({ no, name, version, url }: PackageEntry): string {
  return JSON.stringify({ no, name, version, url }).slice(1, -1);
}

/**
 * Encodes a package for responses: its JSON in base64, without the closing brace and padded with spaces to a
 * multiple of three bytes. The base64 of many entries, and of the text between them, can then be joined and
 * decoded at once.
 * @param members by `entryMembers`.
 */
export function encodeEntry(members: string): string {
  const missing = BASE64_UNIT - ((Buffer.byteLength(members) + 1) % BASE64_UNIT);
  return Buffer.from(`{${' '.repeat(missing % BASE64_UNIT)}${members}`).toString('base64');
}

/** Decodes a package encoded by `encodeEntry`. */
export function decodeEntry(encoded: string): PackageEntry {
  return JSON.parse(`${Buffer.from(encoded, 'base64').toString()}}`) as PackageEntry;
}

/** Encoded entries that are followed by the same text. */
export interface EntryGroup {
  /** Encoded by `encodeEntry`. */
  entries: readonly string[];
  /** The last member of each entry; without it, entries are written as they are. */
  member?: EntryMember;
}

/** The end of an entry and the separator after it, in base64; also multiples of three bytes. */
const ENDS = {
  none: encodeEnd('},\n'),
  rank0: encodeEnd(',"rank":0},\n'),
  rank1: encodeEnd(',"rank":1},\n'),
  rank2: encodeEnd(',"rank":2},\n'),
  distance0: encodeEnd(', "distance": 0},\n'),
  distance1: encodeEnd(', "distance": 1},\n'),
  distance2: encodeEnd(', "distance": 2},\n'),
};

/** A member that a response adds to an entry, with its value. */
export type EntryMember = Exclude<keyof typeof ENDS, 'none'>;

function encodeEnd(text: string): string {
  if (text.length % BASE64_UNIT !== 0) throw new Error('the length of an entry end must be a multiple of 3');
  return Buffer.from(text).toString('base64');
}

/**
 * Writes a response body: `before`, then all entries as the elements of an array, then `]}`. No entry is
 * parsed, and all are decoded at once.
 * @param before JSON up to and including the bracket that opens the array.
 */
export function writeResponseBody(before: string, groups: readonly EntryGroup[]): Buffer {
  let base64 = '';
  for (const { entries, member } of groups) {
    const end = ENDS[member ?? 'none'];
    if (entries.length > 0) base64 += entries.join(end) + end;
  }
  if (base64 === '') return Buffer.from(`${before}]}`);
  const start = Buffer.byteLength(before);
  const answer = Buffer.allocUnsafe(start + (base64.length / 4) * BASE64_UNIT);
  answer.write(before);
  answer.write(base64, start, 'base64');
  // Overwrites the last separator, which has the same length.
  answer.write(']}', answer.length - 2, 'latin1');
  return answer;
}
