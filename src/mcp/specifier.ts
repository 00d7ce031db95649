import { trimWhiteSpace } from '../util/unicode.js';

/** The alias in an npm specifier: `mine@` in `mine@npm:lodash@4`, which installs `lodash`. */
const ALIAS = /^.+@(?=npm:)/;

/** The possible text before a name: a quote and the name of a registry, as in `"lodash"` and `npm:lodash@4`. */
const PREFIX = /^["'`“‘]?(?:(?:npm|jsr|pypi|gem|cargo|composer|nuget|maven|conda|cran):)?/;

/** The possible text after a name, with examples. */
const SUFFIX = new RegExp(
  [
    '[=<>~^;([{]|!=', // requests>=2, redis[hiredis], serde = "1", rails (7.0)
    '(?<!\\s)["\'`”’]', // "lodash": "^4"
    '@', // lodash@4, requests @ https://…
    ':(?=\\s|["\'=<>~^*@]|v?\\d|dev-|$)', // vendor/package:^1.2, group:artifact:1.0, lodash: 4
    ',(?=\\s*(?:v?\\d|$))', // Newtonsoft.Json, 13.0
    '\\/(?=v?\\d+\\.[\\w.+-]*$)', // zlib/1.2
    '\\s(?=v?\\d|[*#])', // Newtonsoft.Json 13.0
  ].join('|'),
);

/** Addresses and paths, which name no package. */
const ADDRESS =
  /^(?:[a-z][a-z\d+.-]*:\/\/|git[+@:]|(?:file|link|workspace|github|gitlab|bitbucket):|\.{0,2}\/|~\/)/i;

/** Characters that are syntax in manifests and on command lines. */
const SYNTAX = /[=<>~^*?;,()[\]{}"'`|\\%]/;

/** The package name in a text from a manifest or command line, perhaps with a version, extras or quotes. */
export function nameIn(text: string): string | undefined {
  const rest = text.replace(ALIAS, '').replace(PREFIX, '');
  // The first character may be the @ of a scope.
  const end = rest.slice(1).search(SUFFIX) + 1;
  const name = trimWhiteSpace(end === 0 ? rest : rest.slice(0, end));
  return name === '' || ADDRESS.test(rest) || SYNTAX.test(name) ? undefined : name;
}

/** An architecture or a release of Debian after a name, as in `libc6:amd64` and `curl/bookworm-backports`. */
const QUALIFIER = /(?<=[^:/])[:/][a-z][a-z\d_-]*$/;

/** A package URL, perhaps quoted as in a bill of materials. Qualifiers and subpath are left out. */
const PACKAGE_URL = /^["'`“‘]?pkg:([^"'`”’?#]*)/i;

/** The possible names in a text: the name, then the name without an architecture or a release. Or a package URL. */
export function candidatesIn(text: string): string[] {
  const [, rest] = PACKAGE_URL.exec(text) ?? [];
  if (rest !== undefined) return [`pkg:${rest}`];
  const name = nameIn(text);
  return name === undefined ? [] : [...new Set([name, name.replace(QUALIFIER, '')])];
}
