import { quote } from '../../util/reason-text.js';
import { DatasetError } from '../fetch/dataset-error.js';
import type { Document, Documents } from '../fetch/documents.js';
import { mapLines, readWholeLines } from '../readers/text-lines.js';
import { compareDebianVersions, compareRVersions } from './versions.js';
import type { Format, Item } from './list-format.js';

/**
 * The fields that are needed, and those that tell R's stanzas from Debian's. Field names are case-insensitive. A line
 * that continues a field begins with white space.
 */
const FIELD = /^(package|version|description|architecture|filename|license|needscompilation):[ \t]*(.*)$/i;

/** The beginning of a field, or of a line that continues a field. */
const LINE = /^([^\s:]+:|[ \t])/;

/**
 * `Packages` indexes of Debian repositories (https://wiki.debian.org/DebianRepository/Format), plain or compressed:
 * stanzas (deb822), separated by empty lines. Each field begins on a new line. A line that has only white space
 * continues a field, as in apt. Repositories list all versions of a package, and the same package for several
 * architectures or components. `PACKAGES` of CRAN and other repositories of R has the same syntax, but R's version
 * order. Its stanzas have `NeedsCompilation` or `License`. Stanzas of Debian have `Architecture` and `Filename`, which
 * R does not write.
 */
export const debian: Format = {
  replaces: (later, earlier, { isR }) =>
    (isR === true ? compareRVersions : compareDebianVersions)(later, earlier) > 0,
  async *read(documents: Documents): AsyncGenerator<Item[]> {
    /** Whether any document has a stanza. Some documents may be empty, because a component may have no packages. */
    let hasStanzas = false;
    for (const [i, url] of documents.urls.entries()) {
      const document = await documents.open(url, documents.urls.length === 1 ? '' : `file ${i + 1}`);
      for await (const stanzas of readStanzas(document)) {
        hasStanzas ||= stanzas.length > 0;
        yield stanzas;
      }
    }
    if (!hasStanzas) throw new DatasetError('expected a Packages index, but it has no stanza');
  },
};

/** @throws {DatasetError} with the number of the line. */
async function* readStanzas(document: Document): AsyncGenerator<Item[]> {
  let fields = new Map<string, string>();
  /** The first line of the stanza; 0 between two stanzas. */
  let start = 0;
  yield* mapLines(readWholeLines(document.text()), (text, at) => {
    if (text === '' || text === '\r') {
      const stanza = start > 0 ? toItem(fields, start) : undefined;
      fields = new Map();
      start = 0;
      return stanza;
    }
    if (!LINE.test(text))
      throw new DatasetError(`line ${at}: expected a field of a Packages index: ${quote(text)}`);
    if (start === 0 && text.trim() !== '') start = at;
    const [, field, value = ''] = FIELD.exec(text.trimEnd()) ?? [];
    if (field !== undefined) fields.set(field.toLowerCase(), value);
    return undefined;
  });
  if (start > 0) yield [toItem(fields, start)];
}

/**
 * The first line of a description is a summary.
 * @param at the first line of the stanza. `isLossy` rejects invalid UTF-8 in the name and the version. Unused fields
 * may have any encoding, such as Latin-1.
 */
function toItem(fields: ReadonlyMap<string, string>, at: number): Item {
  const [name, version] = [fields.get('package'), fields.get('version')];
  if (name !== undefined && !version) return { at, reason: `the stanza of ${quote(name)} has no Version` };
  const isR =
    (fields.has('needscompilation') || fields.has('license')) &&
    !(fields.has('architecture') || fields.has('filename'));
  return { at, name, version, description: fields.get('description'), isLossy: true, isR };
}
