import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gunzipSync } from 'node:zlib';
import type { PackageEntry } from '../../src/snapshot/package-document.js';

const BUNDLED = new URL('../../data/debian-bookworm.csv.gz', import.meta.url);

let bundled: readonly PackageEntry[] | undefined;

/**
 * The bundled snapshot, parsed without code of the service: its fields contain no quotes or commas. It is parsed once.
 * @returns a list of the caller's own, because the service sorts lists in place. The entries are shared.
 */
export function bundledPackages(): PackageEntry[] {
  bundled ??= gunzipSync(readFileSync(BUNDLED))
    .toString()
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => {
      const [no, name, version, url] = line.split(',') as [string, string, string, string];
      return { no: Number(no), name, version, url };
    });
  return [...bundled];
}

/** Packages with the given names, numbered from 1. */
export function packagesNamed(names: readonly string[]): PackageEntry[] {
  return names.map((name, i) => ({
    no: i + 1,
    name,
    version: '1.0.0',
    url: `https://registry.example/${encodeURIComponent(name)}`,
  }));
}

/** A dataset; with the columns `description`, if a package has one, and `weight`, if the first has one. */
export function toCsv(packages: readonly PackageEntry[]): string {
  const quoted = (text: string) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const hasWeights = packages[0]?.weight !== undefined;
  const hasDescriptions = packages.some(({ description }) => description !== undefined);
  const optional = <T>(description: T, weight: T) => [
    ...(hasDescriptions ? [description] : []),
    ...(hasWeights ? [weight] : []),
  ];
  const rows = packages.map(({ no, name, version, url, description = '', weight }) =>
    [String(no), name, version, url, ...optional(description, String(weight))].map(quoted).join(','),
  );
  const header = ['package_no', 'name', 'version', 'url', ...optional('description', 'weight')].join();
  return [header, ...rows, ''].join('\n');
}

/** A dataset in a temporary file that a test can change. */
export interface DatasetFile {
  /** `file:…` */
  url: string;
  write(csv: string | Buffer): Promise<void>;
  remove(): Promise<void>;
}

export async function datasetFile(csv: string | Buffer): Promise<DatasetFile> {
  const folder = await mkdtemp(join(tmpdir(), 'package-registry-search-dataset-'));
  const path = join(folder, 'packages.csv');
  const write = (text: string | Buffer) => writeFile(path, text);
  await write(csv);
  return { url: pathToFileURL(path).href, write, remove: () => rm(folder, { recursive: true, force: true }) };
}
