import { parseJson } from '../util/decode.js';
import { retryAfterSeconds } from '../util/http-response.js';
import * as z from 'zod';
import { withDeadline } from '../util/deadline.js';
import { messageOf } from '../util/reason-text.js';

/** Timeout of one request, in milliseconds. The service itself takes a few seconds at most. */
const TIMEOUT_MS = 10_000;

/** Wait that the agent is told if there is no `Retry-After`, in seconds. */
const DEFAULT_WAIT_SECONDS = 10;

/** Status codes after which the same request may succeed later. Proxies send 502 and 504. */
const TEMPORARY = [429, 502, 503, 504];

export type Params = [name: string, value: string][];

const problemSchema = z.object({ code: z.string(), detail: z.string() });

export class ApiClient {
  /**
   * @param base the address of the service; its path, if it has one, ends with a slash.
   * @param token from `/get-bypass`: skips the rate limits for one hour.
   * @param send sends requests, directly or through a proxy.
   */
  constructor(
    private readonly base: URL,
    private readonly token?: string,
    private readonly send = fetch,
    private readonly timeoutMs = TIMEOUT_MS,
  ) {}

  /**
   * @throws {Error} that tells the agent the reason and, if the failure is temporary, when to try again. If `signal`
   * aborts, its reason.
   */
  async get<T>(path: string, params: Params, schema: z.ZodType<T>, signal: AbortSignal) {
    const url = new URL(`./${path}?${new URLSearchParams(params).toString()}`, this.base);
    const { status, headers, text } = await this.#fetch(url, signal);
    const elsewhere = baseOf(headers.get('Location'), url);
    if (elsewhere !== undefined)
      throw new Error(`${this.base.href} redirects to ${elsewhere}: use that as --url`);
    const body = parseJson(text);
    if (status !== 200) throw this.#failure(status, headers, body);
    const parsed = schema.safeParse(body);
    if (!parsed.success) throw this.#notTheService();
    return { body: parsed.data, headers };
  }

  async #fetch(url: URL, signal: AbortSignal) {
    try {
      return await withDeadline(this.timeoutMs, signal, async (signal) => {
        const response = await this.send(url, {
          headers: this.token === undefined ? {} : { 'X-Bypass-Token': this.token },
          // A redirect could take the token to another host.
          redirect: 'manual',
          signal,
        });
        return { status: response.status, headers: response.headers, text: await response.text() };
      });
    } catch (error) {
      signal.throwIfAborted();
      // An error of `fetch` has the reason only in its cause.
      const reason = messageOf(((error as Error).cause ?? error) as Error);
      throw new Error(`${this.base.origin} cannot be reached (${reason}). ${retryIn(DEFAULT_WAIT_SECONDS)}`);
    }
  }

  #failure(status: number, headers: Headers, body: unknown): Error {
    const isTemporary = TEMPORARY.includes(status);
    const problem = problemSchema.safeParse(body);
    if (!problem.success && !isTemporary) return this.#notTheService();
    const parts = [
      problem.success ? `${problem.data.code}: ${problem.data.detail}` : `HTTP status ${status}`,
    ];
    if (status === 429 && this.token !== undefined) {
      parts.push('The bypass token is not valid here, or expired: it lasts one hour');
    }
    if (isTemporary)
      parts.push(retryIn(retryAfterSeconds(headers.get('Retry-After')) ?? DEFAULT_WAIT_SECONDS));
    return new Error(parts.join('. '));
  }

  #notTheService(): Error {
    return new Error(`${this.base.href} does not respond like a package registry search: check --url`);
  }
}

/** The address of the service that a redirect leads to; undefined if it leads to something else, such as a login. */
function baseOf(location: string | null, requested: URL): string | undefined {
  if (location === null || !URL.canParse(location, requested.href)) return undefined;
  const target = new URL(location, requested);
  const file = /[^/]*$/.exec(requested.pathname)?.[0] ?? '';
  return target.pathname.endsWith(`/${file}`) ? new URL('.', target).href : undefined;
}

function retryIn(seconds: number): string {
  return `Try again in ${seconds} seconds`;
}
