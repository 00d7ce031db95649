import { readFileSync } from 'node:fs';
import {
  request as requestHttp,
  type Agent,
  type IncomingMessage,
  type OutgoingHttpHeaders,
} from 'node:http';
import { request as requestHttps } from 'node:https';
import { HttpProxyAgent } from 'http-proxy-agent';
import { HttpsProxyAgent } from 'https-proxy-agent';
import { PROJECT_FOLDER } from '../../util/project-folder.js';
import { withDeadline } from '../../util/deadline.js';
import { ProxyError, proxyOf } from '../../util/proxy.js';
import { DatasetError, OriginUnavailableError } from './dataset-error.js';

/** Maximum number of redirects: enough for download sites. */
const MAX_REDIRECTS = 5;
const REDIRECT_STATUSES = [300, 301, 302, 303, 307, 308];

/**
 * Number of addresses of a host that are tried in turn, alternately IPv6 and IPv4, within the response timeout. The
 * last address gets the remaining time.
 */
const ADDRESSES = 3;

const { name, version } = JSON.parse(readFileSync(new URL('package.json', PROJECT_FOLDER), 'utf8')) as {
  name: string;
  version: string;
};

/** Some servers reject requests without these headers. */
const HEADERS = { 'User-Agent': `${name}/${version}`, Accept: '*/*' };

/** Limits of a transfer, and the observer of its bytes. */
export interface Transfer {
  /** Maximum waiting time for a response, and for more of its body, in milliseconds. */
  windowMs: number;
  /** Ends every wait. */
  signal: AbortSignal;
  /** Called with the number of bytes that have arrived so far. */
  onBytes?: ((bytes: number) => void) | undefined;
}

/** A secret for one origin. It is never sent to another origin. */
export interface Authorization {
  /** Such as `https://registry.example`. */
  origin: string;
  /** Value of the header `Authorization`. */
  value: string;
}

/**
 * Sets the user and the password of an address that has none, because servers omit them in redirects and links.
 * @param known addresses. The first one of the same origin that has a user or a password is used.
 */
export function setCredentials(url: URL, known: readonly string[]): void {
  if (hasCredentials(url)) return;
  const own = known
    .map((one) => new URL(one))
    .find((one) => one.origin === url.origin && hasCredentials(one));
  if (own === undefined) return;
  url.username = own.username;
  url.password = own.password;
}

function hasCredentials({ username, password }: URL): boolean {
  return username !== '' || password !== '';
}

/**
 * Requests `url` and follows redirects, without reading their bodies.
 * @param configured the addresses of the list. Their credentials are only sent to their own origins.
 * @returns the first response that is not a redirect, and its address.
 * @throws {DatasetError} if there are too many redirects, or a redirect leads to an address that is not http(s).
 */
export async function requestWithRedirects(
  url: URL,
  headers: OutgoingHttpHeaders,
  transfer: Transfer,
  authorization: Authorization | undefined,
  configured: readonly string[],
): Promise<{ body: IncomingMessage; address: URL }> {
  let address = url;
  const visited: string[] = [];
  for (let redirects = 0; ; redirects++) {
    const secret = authorization?.origin === address.origin ? { Authorization: authorization.value } : {};
    const response = await get(address, { ...headers, ...secret }, transfer);
    const { statusCode = 0 } = response;
    const { location } = response.headers;
    const isRedirect = REDIRECT_STATUSES.includes(statusCode) && location !== undefined;
    if (!isRedirect) return { body: response, address };
    response.destroy();
    if (redirects === MAX_REDIRECTS) {
      throw new DatasetError(`the dataset's server redirects more than ${MAX_REDIRECTS} times`);
    }
    const next = URL.canParse(location, address.href) ? new URL(location, address) : undefined;
    if (next === undefined || !/^https?:$/.test(next.protocol)) {
      throw new DatasetError("the dataset's server redirects to something that is not an http(s) address");
    }
    visited.unshift(address.href);
    setCredentials(next, [...visited, ...configured]);
    address = next;
  }
}

/**
 * Sends a request on a new connection, directly or through a proxy. undici 7 is not used for downloads: under
 * backpressure, it treats the end of the connection as a failure even after a complete response, or ends the process
 * with an assertion (nodejs/undici#5360).
 * @returns the response. If the connection fails afterwards, reading the body fails, too.
 */
async function get(
  address: URL,
  headers: OutgoingHttpHeaders,
  { windowMs, signal }: Transfer,
): Promise<IncomingMessage> {
  const send = address.protocol === 'https:' ? requestHttps : requestHttp;
  const tooLate = (what: string) =>
    new OriginUnavailableError(
      `the dataset could not be downloaded: its server did not ${what} within ${windowMs / 1000} s`,
    );
  const exchange = (ended: AbortSignal) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const options = {
        headers: { ...HEADERS, ...headers },
        agent: agentFor(address, ended),
        signal: ended,
        // By default, Node gives up each address but the last after at most 500 ms.
        autoSelectFamilyAttemptTimeout: Math.ceil(windowMs / ADDRESSES),
      };
      const request = send(address, options);
      let response: IncomingMessage | undefined;
      request.on('response', (message) => {
        response = message;
        // The consumer gets the error when it reads. Until then, the error must not end the process.
        message.on('error', () => undefined);
        message.setTimeout(windowMs, () => message.destroy(tooLate('send more')));
        resolve(message);
      });
      request.on('error', (error) => {
        response?.destroy(error);
        reject(error);
      });
      request.on('close', () => reject(new Error('the connection was closed without a response')));
      request.end();
    });
  return withDeadline(windowMs, signal, exchange, () => tooLate('respond'));
}

/**
 * The agent for the proxy of an address; false without a proxy.
 * @param signal closes the connection to the proxy when it aborts. Until the tunnel is open, the end of the request
 * does not close this connection.
 */
function agentFor(address: URL, signal: AbortSignal): Agent | false {
  try {
    const proxy = proxyOf(address);
    if (proxy === undefined) return false;
    const ProxyAgent = address.protocol === 'https:' ? HttpsProxyAgent : HttpProxyAgent;
    return new ProxyAgent(proxy, { signal });
  } catch (error) {
    // An invalid proxy setting is a permanent error: another attempt would fail, too.
    throw error instanceof ProxyError ? new DatasetError(error.message) : error;
  }
}
