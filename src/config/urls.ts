import { fileURLToPath } from 'node:url';

/**
 * Validates the variables that are URLs: each function returns what the variable must be, or undefined if it
 * is valid. Messages never contain the value, which may have a password or a token. Every library that gets a
 * valid value can parse it.
 */

/** One or more nodes of Elasticsearch. */
export function nodesFault(nodes: readonly string[]): string | undefined {
  const urls = nodes.map((node) => parse(node, 'http:', 'https:'));
  const parsed = urls.filter((url) => url !== undefined);
  if (parsed.length === 0 || parsed.length < urls.length) {
    return 'must be the http(s) address of one or more nodes, comma separated';
  }
  if (parsed.some(hasQueryOrFragment)) return 'must have no query and no fragment';
  // The Elasticsearch client takes the first credentials for all nodes, and ignores a user without a
  // password.
  const credentials = new Set(parsed.map(({ username, password }) => `${username}:${password}`));
  const isHalf = parsed.some(({ username, password }) => (username === '') !== (password === ''));
  if (isHalf || credentials.size > 1) {
    return 'must have a user and a password, the same for all nodes, or none at all';
  }
  if (new Set(parsed.map(({ href }) => href)).size < parsed.length) return 'must name each node once';
  return undefined;
}

export function redisFault(text: string): string | undefined {
  const url = parse(text, 'redis:', 'rediss:');
  if (url === undefined) return 'must be redis://… or rediss://…';
  // An opaque host may contain characters that no resolver accepts.
  if (url.hostname.includes('%')) return 'must have a host without percent-encoding';
  if (!/^(\/\d*)?$/.test(url.pathname)) return 'must have no path except a database number, such as /0';
  // ioredis reads any of its options from the query, including those that the service relies on.
  if (url.hash !== '' || !/^(\?family=[046])?$/.test(url.search)) {
    return 'must have no fragment, and no query except ?family=4 or ?family=6';
  }
  return undefined;
}

export function datasetFault(text: string): string | undefined {
  const url = parse(text, 'http:', 'https:', 'file:');
  if (url === undefined) return 'must be http://… or https://… or file:///…';
  if (url.protocol === 'file:' && !isPath(url)) return 'must have a path that is percent-encoded UTF-8';
  return undefined;
}

/** A template of package URLs. A placeholder in the host could lead to another site. */
export function templateFault(text: string): string | undefined {
  const placeholder = /\{\+?name\}/g;
  if (parse(text.replaceAll(placeholder, 'name'), 'http:', 'https:') === undefined) {
    return 'must be http://… or https://…';
  }
  if (!/^https?:\/\/[^/?#{]+[/?#].*\{\+?name\}/.test(text))
    return 'must contain {name} or {+name} after the host';
  return undefined;
}

/** `fetch` rejects a URL with credentials. */
export function kibanaFault(text: string): string | undefined {
  const url = parse(text, 'http:', 'https:');
  if (url === undefined) return 'must be http://… or https://…';
  const hasCredentials = url.username !== '' || url.password !== '';
  return hasCredentials || hasQueryOrFragment(url)
    ? 'must have no user, password, query or fragment'
    : undefined;
}

/**
 * Parses a URL with one of the protocols (such as `http:`, in lower case), a host (except for a file), and a
 * decodable user and password; undefined otherwise. White space and control characters are rejected: `URL`
 * drops some of them, and other parsers do not.
 */
function parse(text: string, ...protocols: string[]): URL | undefined {
  if (/[\s\p{Cc}]/u.test(text) || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  const isFile = url.protocol === 'file:';
  const start = isFile ? 'file:///' : `${url.protocol}//`;
  if (!protocols.includes(url.protocol) || !text.startsWith(start)) return undefined;
  if (url.port === '0' || (!isFile && url.hostname === '')) return undefined;
  return isDecodable(url.username) && isDecodable(url.password) ? url : undefined;
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function isPath(url: URL): boolean {
  try {
    return !fileURLToPath(url).includes('\0');
  } catch {
    return false;
  }
}

function hasQueryOrFragment({ href }: URL): boolean {
  return /[?#]/.test(href);
}
