import { canonicalName, type NameRule } from '../../util/name-rule.js';
import { quote } from '../../util/reason-text.js';
import type { Documents } from '../fetch/documents.js';
import { peek } from '../fetch/decompress.js';
import { mapLines, NOT_UTF8, readWholeLines } from '../readers/text-lines.js';
import { NameTable } from './name-table.js';
import type { Format, Item, ReadOptions } from './list-format.js';
import { compareGemVersions, isPrerelease } from './versions.js';

/** `version[-platform]`; a leading hyphen withdraws the version. A version begins with a digit. */
const VERSION = /^-?\d[^\s,]{0,300}$/;

/**
 * Prefix of the text with the first spelling of a gem. A gem has this text only if its first spelling is not the
 * canonical name. All other texts are lists of versions, and begin with a digit or a hyphen.
 */
const SPELLING = '=';

/** A line of the head, such as `created_at: 2024-04-01T00:00:05Z`. Names have no colon. */
const METADATA = /^[^\s:]+:/;

/** The last line of the head. The head is ignored and may be missing. */
const HEAD_END = /^---\s*$/m;

/**
 * The file `versions` of the compact index (https://guides.rubygems.org/rubygems-org-compact-index-api/). Lines are
 * appended to it for a month, so names repeat. `-version[-platform]` withdraws a version that is listed before it. Some
 * servers (Geminabox, Gemstash, Artifactory, mirrors) omit the lines before `---`, the `---` itself, or the checksums.
 */
export const rubygems: Format = {
  async *read(documents: Documents, { nameRule }: ReadOptions): AsyncGenerator<Item[]> {
    const document = await documents.open(documents.urls[0], '', { 'Accept-Encoding': 'gzip' });
    const { start, chunks } = await peek(document.text());
    const hasHead = HEAD_END.test(start.toString());
    let isHead = hasHead;
    const gems = await NameTable.create();
    yield* mapLines(readWholeLines(chunks), (text, at, isInvalid) => {
      if (isHead) isHead = text.trimEnd() !== '---';
      else if (!hasHead && METADATA.test(text)) return undefined;
      else if (isInvalid) return { at, reason: NOT_UTF8 };
      else if (!readGem(at, text, gems, nameRule))
        return { at, reason: `expected a name, versions and a checksum: ${quote(text)}` };
      return undefined;
    });
    yield* gems.map((gem) => {
      // In the order of the lines: its spelling, if it is stored, then the versions in each line.
      const texts = [...gems.textsOf(gem)].reverse();
      const spelling = texts.find((text) => text.startsWith(SPELLING))?.slice(1);
      const version = highest(texts.filter((text) => !text.startsWith(SPELLING)));
      if (version === undefined) return undefined;
      return { at: gems.numberAt(gem), name: spelling ?? gems.nameAt(gem), version };
    });
  },
};

/** Adds the versions of a line to its gem. @returns false if the line is malformed. */
function readGem(at: number, text: string, gems: NameTable, nameRule: NameRule): boolean {
  const [name = '', versions = ''] = text.trimEnd().split(' ', 2);
  if (name === '') return true;
  if (METADATA.test(name)) return false;
  if (versions !== '' && !versions.split(',').every((version) => VERSION.test(version))) return false;
  const { size } = gems;
  const canonical = canonicalName(nameRule, name);
  const gem = gems.add(canonical, at);
  if (gems.size > size && name !== canonical) gems.push(gem, SPELLING + name);
  if (versions !== '') gems.push(gem, versions);
  return true;
}

/**
 * @param lines the versions of each line, in order.
 * @returns the highest release, or the highest prerelease if there is no release, without its platform; undefined if
 * all versions are withdrawn.
 */
function highest(lines: readonly string[]): string | undefined {
  const left = new Set<string>();
  for (const version of lines.flatMap((line) => line.split(','))) {
    if (version.startsWith('-')) left.delete(version.slice(1));
    else left.add(version);
  }
  const versions = [...left].map((version) => version.replace(/-.*$/, ''));
  const releases = versions.filter((version) => !isPrerelease(version));
  return (releases.length > 0 ? releases : versions).reduce<string | undefined>(
    (best, version) => (best === undefined || compareGemVersions(version, best) > 0 ? version : best),
    undefined,
  );
}
