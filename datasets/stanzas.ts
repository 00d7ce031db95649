import { quote } from '../src/rebuild/process/reason-text.js';

/** A binary package of a `Packages` index. */
export interface DebianPackage {
  name: string;
  version: string;
}

/** The two fields that a dataset needs. Field names are case-insensitive; continuation lines begin with a space. */
const FIELD = /^(package|version):[ \t]*(.*?)\s*$/i;

/**
 * Reads the stanzas of a `Packages` index (deb822): fields, one per line, with an empty line after each stanza.
 * @throws {Error} if the text is something else, or a stanza has no version.
 */
export function* readStanzas(text: string): Generator<DebianPackage> {
  const lines = text.split('\n');
  let fields: Record<string, string> = {};
  let start = 0;
  let stanzas = 0;
  for (let i = 0; i <= lines.length; i++) {
    const line = lines[i]?.trimEnd() ?? '';
    if (line !== '') {
      const [, field, value] = FIELD.exec(line) ?? [];
      if (field !== undefined) fields[field.toLowerCase()] = value ?? '';
      continue;
    }
    if (i > start) {
      yield toPackage(fields, start + 1);
      stanzas++;
    }
    fields = {};
    start = i + 1;
  }
  if (stanzas === 0) throw new Error('this is not a Packages index: it has no stanza');
}

/** @param line the stanza begins on, from 1. */
function toPackage(
  { package: name = '', version = '' }: Record<string, string>,
  line: number,
): DebianPackage {
  if (name === '')
    throw new Error(`this is not a Packages index: line ${line} begins a stanza without Package`);
  if (version === '') throw new Error(`line ${line}: the stanza of ${quote(name)} has no Version`);
  return { name, version };
}
