import type { Readable } from 'node:stream';
import type { Problem } from '../problems/problem.js';

/** A header has the same spelling in the whole program, because objects with headers are merged by name. */
export type ResponseHeaders = Readonly<Record<string, string>>;

/** Alternating names and values of headers, in the form that `writeHead` accepts. */
export type HeaderFields = readonly string[];

/** A response, without the headers that `send` adds to every response. Many requests may share it. */
export interface HttpResponse {
  status: number;
  headers: ResponseHeaders;
  /** The headers as a list, if many requests share the response. */
  fields?: HeaderFields;
  /** Undefined for 204 and 304, and for a stream. */
  body?: Buffer;
  /** A body of any length. If the stream fails, the connection is reset, so that clients notice the truncation. */
  stream?: Readable;
}

export type BodyResponse = HttpResponse & { body: Buffer };

export const NO_STORE: ResponseHeaders = { 'Cache-Control': 'no-store' };

const JSON_TYPE = 'application/json; charset=utf-8';

/** Characters that XML 1.0 forbids, even escaped, and lone surrogates. */
const NOT_XML = /[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu;

/** @param body JSON, unless `headers` has another `Content-Type`. */
export function bodyResponse(body: Buffer, headers: ResponseHeaders = {}, status = 200): BodyResponse {
  const length = String(body.length);
  return { status, headers: { 'Content-Type': JSON_TYPE, ...headers, 'Content-Length': length }, body };
}

export function jsonResponse(value: unknown, headers?: ResponseHeaders, status?: number): BodyResponse {
  return bodyResponse(Buffer.from(JSON.stringify(value)), headers, status);
}

export function problemResponse({ status, headers, body }: Problem): BodyResponse {
  const type = { 'Content-Type': 'application/problem+json' };
  return jsonResponse(body, { ...NO_STORE, ...type, ...headers }, status);
}

/** @param type the content type without a character set. */
export function xmlResponse(xml: string, type: string, headers?: ResponseHeaders): BodyResponse {
  return bodyResponse(Buffer.from(xml), { ...headers, 'Content-Type': `${type}; charset=utf-8` });
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** For text and attributes in double quotes. */
export function escapeXml(text: string): string {
  return text.replace(NOT_XML, '\uFFFD').replace(/[&<>"]/g, (character) => ENTITIES[character] ?? '');
}

type Relation = 'first' | 'prev' | 'next' | 'last';

/** Query parameters of a target. */
type Params = Record<string, string | number>;

/**
 * The `Link` header (RFC 8288); an empty object without targets. Each target is a relative reference with only a query
 * string, which also works behind a proxy that changes the path. Targets and parameters are written in the given order.
 */
export function linkHeader(targets: Partial<Record<Relation, Params | undefined>>): Record<string, string> {
  const links = Object.entries(targets).flatMap(([relation, params]) => {
    if (params === undefined) return [];
    const query = Object.entries(params).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
    return [`<?${query.join('&')}>; rel="${relation}"`];
  });
  return links.length === 0 ? {} : { Link: links.join(', ') };
}

export function fieldsOf(headers: ResponseHeaders): HeaderFields {
  return Object.entries(headers).flat();
}

/** Prepares a response that many requests share: its headers are listed once. */
export function shared(response: BodyResponse): BodyResponse {
  return { ...response, fields: fieldsOf(response.headers) };
}
