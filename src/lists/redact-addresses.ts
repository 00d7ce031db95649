/** Replacement of an address. */
const HIDDEN = '(address hidden)';

/** Forms of addresses in the errors of Node, its libraries and Elasticsearch. */
const ADDRESSES = [
  // A URL.
  /\b[a-z][a-z\d+.-]*:\/\/[^\s"'<>()]+/gi,
  // `connect ECONNREFUSED <address>`, `getaddrinfo ENOTFOUND <host>`.
  /(?<=\bE[A-Z_]{3,} )\S+/g,
  // `EACCES: permission denied, open '<path>'`.
  /(?<= ')\/[^']*(?=')/g,
  // IPv6 with and without brackets, IPv4, and host names. Host names are recognised only with a port.
  /\[(?=(?:[\da-f.]*:){2})[\da-f:.]+(?:%\w+)?\](?::\d+)?/gi,
  /(?<![\w:.])(?=[\da-f:]*::|(?:[\da-f]{1,4}:){7})[\da-f:]{3,}(?:%\w+)?(?![\w:])/gi,
  /(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?![\w.])/g,
  /\b(?=[\w.-]*[a-z])[\w.-]+:\d{2,5}\b/gi,
];

/** The message of an error from a library or from Elasticsearch, without addresses in the forms of `ADDRESSES`. */
export function redactAddresses({ message, code }: Error & { code?: unknown }): string {
  // TLS errors contain host names in prose, so only the code is kept.
  if (typeof code === 'string' && /CERT|TLS/.test(code)) return code;
  return ADDRESSES.reduce((text, address) => text.replaceAll(address, HIDDEN), message);
}
