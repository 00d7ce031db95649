import { percentDecoded } from './decode.js';

/** Types whose namespace is the first part of the name. */
const NAMESPACE_IN_NAME = ['npm', 'composer'];

/** Types whose namespace is a distribution. */
const NAMESPACE_IGNORED = ['deb', 'cran'];

const PACKAGE_URL = /^pkg:\/*([^/?#]+)\/+([^?#]+)/i;

/**
 * The name in a package URL (https://github.com/package-url/purl-spec). Version, qualifiers and subpath are ignored.
 * @param type the expected type, in lower case.
 * @returns undefined for another type, a namespace that the type does not have, and a malformed package URL.
 */
export function nameInPackageUrl(url: string, type: string): string | undefined {
  const [, actual, path = ''] = PACKAGE_URL.exec(url) ?? [];
  const segments = path.split('/').filter(Boolean);
  const name = segments.pop()?.replace(/@[^@]*$/, '');
  if (!name || actual?.toLowerCase() !== type) return undefined;
  if (NAMESPACE_IN_NAME.includes(type)) return percentDecoded([...segments, name].join('/'));
  return segments.length === 0 || NAMESPACE_IGNORED.includes(type) ? percentDecoded(name) : undefined;
}
