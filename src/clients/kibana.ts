import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';

/** A first start of Kibana takes a minute or two, in milliseconds. */
const READY_TIMEOUT_MS = 300_000;
const POLL_MS = 1000;
/** Timeout of a status request, in milliseconds. */
const STATUS_TIMEOUT_MS = 10_000;
const IMPORT_TIMEOUT_MS = 60_000;
/** Characters of an answer that is not understood. */
const SHOWN = 500;

/** Levels at which Kibana serves; `degraded` is one that misses something of its own, such as the way to the internet. */
const SERVING = ['available', 'degraded'];

/** The part of the answer that also those without rights get. */
const statusAnswer = z.object({ status: z.object({ overall: z.object({ level: z.string() }) }) });

const importAnswer = z.object({
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
type ImportError = z.infer<typeof importAnswer>['errors'][number];

/** Where Kibana is, and the key to it. */
export interface KibanaAccess {
  /** With its base path and space, if any. */
  url: string;
  apiKey: string | undefined;
}

/** The little that the set-up asks of a Kibana. */
export class Kibana {
  readonly #url: string;
  readonly #headers: Record<string, string>;

  constructor({ url, apiKey }: KibanaAccess) {
    this.#url = url.replace(/\/+$/, '');
    this.#headers = {
      // Kibana refuses what a page of another origin could send; the value does not matter.
      'kbn-xsrf': 'true',
      ...(apiKey === undefined ? {} : { Authorization: `ApiKey ${apiKey}` }),
    };
  }

  /**
   * Waits until Kibana serves.
   * @param say is called with what it waits for, each time that changes.
   * @throws {Error} with the reason after `patienceMs`; at once if the key is rejected.
   */
  async ready(say: (what: string) => void, patienceMs = READY_TIMEOUT_MS): Promise<void> {
    const began = performance.now();
    let said: string | undefined;
    for (;;) {
      const obstacle = await this.#obstacle();
      if (obstacle === undefined) return;
      if (performance.now() - began >= patienceMs) {
        throw new Error(`waited ${Math.round(patienceMs / 1000)} seconds in vain: ${obstacle}`);
      }
      if (obstacle !== said) say(obstacle);
      said = obstacle;
      await pause(POLL_MS);
    }
  }

  /**
   * Imports saved objects, in the place of those with the same ids.
   * @param ndjson one object a line, as Kibana exports them.
   * @returns how many there are.
   * @throws {Error} naming each one that was refused, and why.
   */
  async import(ndjson: string): Promise<number> {
    const form = new FormData();
    form.append('file', new Blob([ndjson], { type: 'application/ndjson' }), 'saved-objects.ndjson');
    const { status, body } = await this.#ask(
      '/api/saved_objects/_import?overwrite=true',
      IMPORT_TIMEOUT_MS,
      form,
    );
    const answer = status === 200 ? parse(importAnswer, body) : undefined;
    if (answer === undefined) {
      throw new Error(`Kibana answers ${status} to the import: ${body.slice(0, SHOWN)}`);
    }
    if (answer.success && answer.errors.length === 0) return answer.successCount;
    throw new Error(`Kibana refused ${answer.errors.map(describe).join('; ') || 'the import'}`);
  }

  /** What keeps Kibana from serving, or undefined. @throws {Error} where it will not go away. */
  async #obstacle(): Promise<string | undefined> {
    const answer = await this.#ask('/api/status', STATUS_TIMEOUT_MS).catch(
      (error: unknown) => error as Error,
    );
    if (answer instanceof Error) return answer.message;
    const { status, body } = answer;
    if (status === 401 || status === 403) {
      throw new Error(`Kibana answers ${status}: KIBANA_API_KEY is missing, wrong or without rights`);
    }
    // Before Kibana has a status it answers in plain text.
    const level = parse(statusAnswer, body)?.status.overall.level;
    if (level === undefined) return `Kibana at ${this.#url} does not tell its status yet (${status})`;
    return status === 200 && SERVING.includes(level) ? undefined : `Kibana at ${this.#url} is ${level}`;
  }

  /** Gets, or posts a form. @throws {Error} where there is no answer. */
  async #ask(path: string, timeoutMs: number, form?: FormData): Promise<{ status: number; body: string }> {
    try {
      const response = await fetch(this.#url + path, {
        ...(form === undefined ? {} : { method: 'POST', body: form }),
        headers: this.#headers,
        signal: AbortSignal.timeout(timeoutMs),
      });
      return { status: response.status, body: await response.text() };
    } catch (error) {
      throw new Error(`Kibana does not answer at ${this.#url}: ${reasonOf(error as Error)}`, {
        cause: error,
      });
    }
  }
}

/** The message that `fetch` hides in the cause; only the code if several addresses were tried. */
function reasonOf({ message, cause }: Error): string {
  if (!(cause instanceof Error)) return message;
  return cause.message || ((cause as NodeJS.ErrnoException).code ?? message);
}

/** The JSON of an answer, or undefined where it is something else. */
function parse<T>(schema: z.ZodType<T>, body: string): T | undefined {
  try {
    return schema.safeParse(JSON.parse(body)).data;
  } catch {
    return undefined;
  }
}

function describe({ type, id, error }: ImportError): string {
  const missing = error.references?.map((reference) => `${reference.type} ${reference.id}`).join(', ');
  return `${type} ${id} (${[error.type, error.message ?? missing].filter(Boolean).join(': ')})`;
}
