/** What an address is replaced by. */
const HIDDEN = '(address hidden)';

/** Forms in which the errors of Node, of its libraries and of Elasticsearch contain addresses. */
const ADDRESSES = [
  // A URL.
  /\b[a-z][a-z\d+.-]*:\/\/[^\s"'<>()]+/gi,
  // `connect ECONNREFUSED <address>`, `getaddrinfo ENOTFOUND <host>`.
  /(?<=\bE[A-Z_]{3,} )\S+/g,
  // `EACCES: permission denied, open '<path>'`.
  /(?<= ')\/[^']*(?=')/g,
  // IPv6 in brackets and without, IPv4, and a host name; each with a port, which the first two may lack.
  /\[(?=(?:[\da-f.]*:){2})[\da-f:.]+(?:%\w+)?\](?::\d+)?/gi,
  /(?<![\w:.])(?=[\da-f:]*::|(?:[\da-f]{1,4}:){7})[\da-f:]{3,}(?:%\w+)?(?![\w:])/gi,
  /(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?![\w.])/g,
  /\b(?=[\w.-]*[a-z])[\w.-]+:\d{2,5}\b/gi,
];

/** Hides every address in the message of an error that a library or an engine worded. */
export function redactAddresses({ message, code }: Error & { code?: unknown }): string {
  // These name the hosts of the certificate and of the request in prose.
  if (typeof code === 'string' && /CERT|TLS/.test(code)) return code;
  return ADDRESSES.reduce((text, address) => text.replaceAll(address, HIDDEN), message);
}
