import { quote } from '../../process/reason-text.js';
import { DatasetError } from '../dataset-error.js';
import type { Documents } from '../documents/documents.js';
import { readLines, type Line } from '../documents/lines.js';
import { NameTable } from '../documents/name-table.js';
import type { Format, ListedPackage } from './format.js';
import { packagesOf } from './packages-of.js';
import { compareVersions, isPrerelease } from './rubygems-version.js';

/** `version[-platform]`, withdrawn if it begins with a hyphen. A version begins with a digit. */
const VERSION = /^-?\d[^\s,]*$/;

/** Such as `created_at: 2024-04-01T00:00:05Z`. Names have no colon. */
const METADATA = /^[^\s:]+:/;

/**
 * `versions` of the compact index (https://guides.rubygems.org/rubygems-org-compact-index-api/): lines are appended to it for a
 * month, so names repeat, and `-version` withdraws an earlier one of the same platform. Real servers (Geminabox, Gemstash,
 * Artifactory, mirrors) leave out the lines before `---`, or it alone, or the checksums.
 */
export const rubygems: Format = {
  columns: ['version'],
  async *read(documents: Documents): AsyncGenerator<ListedPackage[]> {
    const document = await documents.open(documents.urls[0], '', { 'Accept-Encoding': 'gzip' });
    let gems = await NameTable.create();
    /** Whether `---` was there: before it, a line that is not that of a gem is no error. */
    let hasBegun = false;
    let fault: DatasetError | undefined;
    for await (const batch of readLines(document.text(), { lastLineMayBeOpen: false })) {
      for (const line of batch) {
        if (line.text.trimEnd() === '---' && !hasBegun) {
          gems = await NameTable.create();
          hasBegun = true;
          fault = undefined;
        } else if (hasBegun || !METADATA.test(line.text)) fault ??= readGem(line, gems);
      }
      if (hasBegun && fault !== undefined) throw fault;
    }
    if (fault !== undefined) throw fault;
    yield* packagesOf(gems, (position) => {
      const version = highest([...gems.textsOf(position)].reverse());
      return version === undefined ? undefined : { name: gems.nameAt(position), version };
    });
  },
};

/** Adds the versions of a line to its gem. @returns what is wrong with the line. */
function readGem({ no, text }: Line, gems: NameTable): DatasetError | undefined {
  const [name = '', versions = ''] = text.trimEnd().split(' ');
  if (name === '') return undefined;
  const position = gems.add(name);
  if (versions === '') return undefined;
  if (METADATA.test(name) || !versions.split(',').every((version) => VERSION.test(version))) {
    return new DatasetError(`line ${no}: expected a name, versions and a checksum: ${quote(text)}`);
  }
  gems.push(position, versions);
  return undefined;
}

/** @param lines the versions of each line, in order. @returns the highest without its platform; undefined if all are withdrawn. */
function highest(lines: readonly string[]): string | undefined {
  const left = new Set<string>();
  for (const version of lines.flatMap((line) => line.split(','))) {
    if (version.startsWith('-')) left.delete(version.slice(1));
    else left.add(version);
  }
  const versions = [...left].map((version) => version.replace(/-.*$/, ''));
  const releases = versions.filter((version) => !isPrerelease(version));
  return (releases.length > 0 ? releases : versions).reduce<string | undefined>(
    (best, version) => (best === undefined || compareVersions(version, best) > 0 ? version : best),
    undefined,
  );
}
