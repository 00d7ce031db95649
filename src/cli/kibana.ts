import { setTimeout as pause } from 'node:timers/promises';
import * as z from 'zod';
import { withDeadline } from '../util/deadline.js';
import { messageOf } from '../util/error-message.js';
import { jsonText } from '../util/json-text.js';

/** Timeout of the wait for Kibana, in milliseconds. Kibana's first start takes a minute or two. */
const READY_TIMEOUT_MS = 300_000;
const POLL_MS = 1000;
/** Timeout of a status request, in milliseconds. */
const STATUS_TIMEOUT_MS = 10_000;
const IMPORT_TIMEOUT_MS = 60_000;
/** Maximum number of characters of an unexpected response in an error message. */
const MAX_SHOWN_CHARACTERS = 500;

/**
 * Levels at which Kibana serves requests. `degraded` means that something is missing, such as access to the internet.
 */
const SERVING = ['available', 'degraded'];

/** The part of the response of `/api/status` that requires no privileges. */
const statusText = jsonText.pipe(
  z.object({ status: z.object({ overall: z.object({ level: z.string() }) }) }),
);

const importResponse = z.object({
  success: z.boolean(),
  successCount: z.int(),
  errors: z
    .array(
      z.object({
        type: z.string(),
        id: z.string(),
        error: z.looseObject({
          type: z.string(),
          message: z.string().optional(),
          references: z.array(z.object({ type: z.string(), id: z.string() })).optional(),
        }),
      }),
    )
    .default([]),
});
const importText = jsonText.pipe(importResponse);
type ImportError = z.infer<typeof importResponse>['errors'][number];

/** A client for the requests of `npm run kibana:setup`. */
export class Kibana {
  readonly #url: string;
  readonly #headers: Record<string, string>;

  /** The URL may have a base path and the path of a Kibana space, such as `/s/registry`. */
  constructor({ url, apiKey }: { url: string; apiKey: string | undefined }) {
    this.#url = url.replace(/\/+$/, '');
    this.#headers = {
      // Kibana requires this header as a protection against cross-site requests. The value of the header does not
      // matter.
      'kbn-xsrf': 'true',
      ...(apiKey === undefined ? {} : { Authorization: `ApiKey ${apiKey}` }),
    };
  }

  /**
   * Waits until Kibana serves requests.
   * @param onWait is called with the reason for waiting whenever the reason changes.
   * @throws {Error} with the reason after `timeoutMs`; at once if the key is rejected.
   */
  async ready(
    onWait: (reason: string) => void,
    timeoutMs = READY_TIMEOUT_MS,
    pollMs = POLL_MS,
  ): Promise<void> {
    const began = performance.now();
    let reported: string | undefined;
    for (;;) {
      const obstacle = await this.#obstacle();
      if (obstacle === undefined) return;
      if (performance.now() - began >= timeoutMs) {
        throw new Error(`gave up after ${Math.round(timeoutMs / 1000)} seconds: ${obstacle}`);
      }
      if (obstacle !== reported) onWait(obstacle);
      reported = obstacle;
      await pause(pollMs);
    }
  }

  /**
   * Imports saved objects. Existing objects with the same ids are replaced.
   * @param ndjson one object per line, as Kibana exports them.
   * @returns the number of objects.
   * @throws {Error} naming each rejected object and the reason.
   */
  async import(ndjson: string): Promise<number> {
    const form = new FormData();
    form.append('file', new Blob([ndjson], { type: 'application/ndjson' }), 'saved-objects.ndjson');
    const { status, body } = await this.#ask(
      '/api/saved_objects/_import?overwrite=true',
      IMPORT_TIMEOUT_MS,
      form,
    );
    const response = status === 200 ? importText.safeParse(body).data : undefined;
    if (response === undefined) {
      throw new Error(
        `Kibana responded to the import with ${status}: ${body.slice(0, MAX_SHOWN_CHARACTERS)}`,
      );
    }
    if (response.success && response.errors.length === 0) return response.successCount;
    throw new Error(`Kibana rejected ${response.errors.map(describe).join('; ') || 'the import'}`);
  }

  /**
   * The reason why Kibana does not serve requests yet. Undefined if Kibana serves requests.
   * @throws {Error} if the key is missing or rejected.
   */
  async #obstacle(): Promise<string | undefined> {
    const response = await this.#ask('/api/status', STATUS_TIMEOUT_MS).catch(
      (error: unknown) => error as Error,
    );
    if (response instanceof Error) return response.message;
    const { status, body } = response;
    if (status === 401 || status === 403) {
      throw new Error(`Kibana responded with ${status}: KIBANA_API_KEY is missing, wrong or lacks rights`);
    }
    // At startup, Kibana responds in plain text.
    const level = statusText.safeParse(body).data?.status.overall.level;
    if (level === undefined) return `Kibana at ${this.#url} reports no status yet (${status})`;
    return status === 200 && SERVING.includes(level) ? undefined : `Kibana at ${this.#url} is ${level}`;
  }

  /** Sends a GET, or a POST with a form. @throws {Error} if Kibana does not respond. */
  async #ask(path: string, timeoutMs: number, form?: FormData): Promise<{ status: number; body: string }> {
    try {
      return await withDeadline(timeoutMs, undefined, async (signal) => {
        const response = await fetch(this.#url + path, {
          ...(form === undefined ? {} : { method: 'POST', body: form }),
          headers: this.#headers,
          signal,
        });
        return { status: response.status, body: await response.text() };
      });
    } catch (error) {
      // The error of a failed `fetch` has the reason in its `cause`.
      const reason = messageOf(((error as Error).cause ?? error) as Error);
      throw new Error(`Kibana does not respond at ${this.#url}: ${reason}`, { cause: error });
    }
  }
}

function describe({ type, id, error }: ImportError): string {
  const missing = error.references?.map((reference) => `${reference.type} ${reference.id}`).join(', ');
  return `${type} ${id} (${[error.type, error.message ?? missing].filter(Boolean).join(': ')})`;
}
