import type { NameRule } from '../util/name-rule.js';

/** Traits of a format that settings depend on. `lists/formats` reads its lists. */
interface Traits {
  /** Whether packages can have a URL. Otherwise, `PACKAGE_URL_TEMPLATE` must be set. */
  hasUrls?: true;
  /** How the registry of this format compares names; `exact` by default. */
  nameRule?: NameRule;
  /** The type of the package URLs of this format's registries. */
  purlType?: string;
}

/** The values of `DATASET_FORMAT`. */
export const FORMATS = {
  crates: { nameRule: 'crates', purlType: 'cargo' },
  csv: { hasUrls: true },
  debian: { purlType: 'deb' },
  json: {},
  jsonl: { hasUrls: true },
  lines: {},
  npm: { purlType: 'npm' },
  packagist: { nameRule: 'lowercase', purlType: 'composer' },
  pypi: { nameRule: 'pypi', purlType: 'pypi' },
  rubygems: { purlType: 'gem' },
} satisfies Record<string, Traits>;

export type DatasetFormat = keyof typeof FORMATS;

export const DATASET_FORMATS = Object.keys(FORMATS) as [DatasetFormat, ...DatasetFormat[]];

export function defaultNameRule(format: DatasetFormat): NameRule {
  const { nameRule }: Traits = FORMATS[format];
  return nameRule ?? 'exact';
}

export function defaultPurlType(format: DatasetFormat): string | undefined {
  const { purlType }: Traits = FORMATS[format];
  return purlType;
}
