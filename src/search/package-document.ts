/** A package as the API answers it, without `rank`. */
export interface PackageEntry {
  no: number;
  name: string;
  version: string;
  url: string;
}

/** A name has no more bytes than this in UTF-8. */
export const MAX_NAME_BYTES = 512;

/** Bytes that base64 writes as four characters, without padding. */
const BASE64_UNIT = 3;

/** The JSON of an entry without its braces, members in the order of the contract. */
export function entryMembers({ no, name, version, url }: PackageEntry): string {
  return JSON.stringify({ no, name, version, url }).slice(1, -1);
}

/**
 * What the index keeps of a package for answers: its JSON in base64. The closing brace is left out and the length made a
 * multiple of three by spaces, so that the base64 of many entries, and of what goes between them, can be joined as text
 * and decoded as one.
 * @param members by `entryMembers`.
 */
export function encodeEntry(members: string): string {
  const missing = BASE64_UNIT - ((Buffer.byteLength(members) + 1) % BASE64_UNIT);
  return Buffer.from(`{${' '.repeat(missing % BASE64_UNIT)}${members}`).toString('base64');
}

/** A package as `encodeEntry` wrote it. */
export function decodeEntry(encoded: string): PackageEntry {
  return JSON.parse(`${Buffer.from(encoded, 'base64').toString()}}`) as PackageEntry;
}

/** Encoded entries that are followed by the same text. */
export interface EntryGroup {
  /** As `encodeEntry` made them. */
  entries: readonly string[];
  /** The last member of each entry; without it, entries are written as they are. */
  member?: EntryMember;
}

/** What ends an entry and separates it from the next, in base64: a multiple of three bytes, too. */
const ENDS = {
  none: encodeEnd('},\n'),
  rank0: encodeEnd(',"rank":0},\n'),
  rank1: encodeEnd(',"rank":1},\n'),
  rank2: encodeEnd(',"rank":2},\n'),
  distance0: encodeEnd(', "distance": 0},\n'),
  distance1: encodeEnd(', "distance": 1},\n'),
  distance2: encodeEnd(', "distance": 2},\n'),
};

/** A member that an entry has in the response to a search, with its value. */
export type EntryMember = Exclude<keyof typeof ENDS, 'none'>;

function encodeEnd(text: string): string {
  if (text.length % BASE64_UNIT !== 0) throw new Error('what ends an entry must keep base64 aligned');
  return Buffer.from(text).toString('base64');
}

/**
 * Writes an answer: `before`, then all entries as the elements of an array, then `]}`. No entry is decoded by itself, and
 * none becomes an object.
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
  // In the place of the last separator, which is as long.
  answer.write(']}', answer.length - 2, 'latin1');
  return answer;
}
