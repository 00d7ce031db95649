import { quote } from '../../process/reason-text.js';
import { DatasetError } from '../dataset-error.js';
import type { Document } from '../documents/document.js';
import type { Documents } from '../documents/documents.js';
import { readLines } from '../documents/lines.js';
import { NameTable } from '../documents/name-table.js';
import { compareVersions } from './debian-version.js';
import type { Format, ListedPackage } from './format.js';
import { packagesOf } from './packages-of.js';

/** The two fields that are needed. Names of fields have any case; the lines that continue a field begin with white space. */
const FIELD = /^(package|version):[ \t]*(.*)$/i;

/** A field, or a line that continues one. */
const LINE = /^([^\s:]+:|[ \t])/;

/**
 * `Packages` indexes of Debian repositories (https://wiki.debian.org/DebianRepository/Format), plain or compressed: stanzas
 * (deb822) of fields, one a line, each ended by an empty line; one of white space continues a field, as for apt. Repositories list
 * all versions of a package, and several architectures or components have the same one. CRAN's `PACKAGES` has the same form; its
 * versions compare like those of dpkg.
 */
export const debian: Format = {
  columns: ['version'],
  async *read(documents: Documents): AsyncGenerator<ListedPackage[]> {
    const versions = await NameTable.create();
    /** An index of a component without packages is empty. */
    let hasStanzas = false;
    for (const [i, url] of documents.urls.entries()) {
      const document = await documents.open(url, documents.urls.length === 1 ? '' : `file ${i + 1}`);
      for await (const stanzas of readStanzas(document)) {
        hasStanzas ||= stanzas.length > 0;
        for (const { name, version } of stanzas) {
          const position = versions.add(name);
          const known = versions.lastOf(position);
          if (known === undefined || compareVersions(version, known) > 0) versions.push(position, version);
        }
      }
    }
    if (!hasStanzas) throw new DatasetError('expected a Packages index, but it has no stanza');
    yield* packagesOf(versions);
  },
};

/** In place of bytes that are not UTF-8, which only matter in a field that is used: repositories have fields in Latin-1. */
const INVALID = '\uFFFD';

interface Stanza {
  name: string;
  version: string;
}

/** @throws {DatasetError} naming the line. */
async function* readStanzas(document: Document): AsyncGenerator<Stanza[]> {
  let fields = new Map<string, string>();
  /** The line that the stanza begins on; 0 between two stanzas. */
  let start = 0;
  for await (const lines of readLines(document.text(), { lastLineMayBeOpen: false, isLossy: true })) {
    const stanzas: Stanza[] = [];
    for (const { no, text } of lines) {
      if (text === '' || text === '\r') {
        if (start > 0) stanzas.push(toStanza(fields, start));
        fields = new Map();
        start = 0;
        continue;
      }
      if (!LINE.test(text))
        throw new DatasetError(`line ${no}: expected a field of a Packages index: ${quote(text)}`);
      if (start === 0 && text.trim() !== '') start = no;
      const [, field, value = ''] = FIELD.exec(text.trimEnd()) ?? [];
      if (value.includes(INVALID)) throw new DatasetError(`line ${no}: ${field} is not valid UTF-8`);
      if (field !== undefined) fields.set(field.toLowerCase(), value);
    }
    yield stanzas;
  }
  if (start > 0) yield [toStanza(fields, start)];
}

/** @param line the stanza begins on. */
function toStanza(fields: ReadonlyMap<string, string>, line: number): Stanza {
  const name = fields.get('package') ?? '';
  const version = fields.get('version') ?? '';
  if (name === '') throw new DatasetError(`line ${line}: expected a stanza with the field Package`);
  if (version === '') throw new DatasetError(`line ${line}: the stanza of ${quote(name)} has no Version`);
  return { name, version };
}
