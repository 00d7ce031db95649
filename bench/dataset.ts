import { createWriteStream } from 'node:fs';
import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import type { PackageEntry } from '../src/search/package-document.js';
import { FingerprintSet } from '../src/rebuild/fingerprint-set.js';
import { registryNames } from './names.js';

/** The first `count` packages of the generated registry, numbered from 1. */
export async function* generatedPackages(count: number): AsyncGenerator<PackageEntry> {
  const seen = await FingerprintSet.create();
  const names = registryNames();
  for (let no = 1; no <= count; no++) {
    let name = names.next().value;
    // The number makes it new; that it seemed to be there already may be a false alarm, which does no harm.
    if (!seen.add(name)) seen.add((name = `${name}-${no}`));
    yield {
      no,
      name,
      version: `${no % 20}.${no % 7}.${no % 13}`,
      url: `https://registry.example/package/${no}`,
    };
  }
}

/** Writes that dataset as CSV: none of its fields needs quotes. */
export async function writeDataset(path: string, count: number): Promise<void> {
  const file = createWriteStream(path, { highWaterMark: 1024 * 1024 });
  let rows = 'package_no,name,version,url\n';
  for await (const { no, name, version, url } of generatedPackages(count)) {
    rows += `${no},${name},${version},${url}\n`;
    if (rows.length < 256 * 1024) continue;
    if (!file.write(rows)) await once(file, 'drain');
    rows = '';
  }
  file.end(rows);
  await finished(file);
}
