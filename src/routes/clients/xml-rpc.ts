import type { IncomingMessage } from 'node:http';
import { Problem } from '../../http/problems/problem.js';
import { bodyResponse, NO_STORE, type BodyResponse } from '../../http/response/response.js';

export const MAX_CALL_BYTES = 64 * 1024;

/** Elements from `methodCall` to a `string` in an array in a member of a structure. */
const MAX_DEPTH = 11;

/** The element of a member's value, or of a value in its array. */
const MEMBER_VALUE = /^methodCall params param value struct member value( array data value)?( string)?$/;

export interface MethodCall {
  method: string;
  /** The texts of each member of structures among the parameters. */
  members: Map<string, string[]>;
}

/**
 * Reads a call of XML-RPC. Knows only the entities of XML itself. The rest of a body that is too large is received and
 * dropped: a client that is still sending would not read the response.
 * @throws {Problem} 400
 */
export async function readCall(request: IncomingMessage): Promise<MethodCall> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= MAX_CALL_BYTES) chunks.push(chunk);
  }
  if (bytes > MAX_CALL_BYTES) throw invalidCall(`has more than ${MAX_CALL_BYTES} bytes`);
  return parseCall(decode(Buffer.concat(chunks)));
}

function decode(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    throw invalidCall('is not UTF-8');
  }
}

async function parseCall(xml: string): Promise<MethodCall> {
  const { Parser } = await import('htmlparser2');
  const call: MethodCall = { method: '', members: new Map() };
  const path: string[] = [];
  let text = '';
  let member = '';
  const parser = new Parser(
    {
      onprocessinginstruction: (name) => {
        if (name.startsWith('!')) throw invalidCall('has a document type');
      },
      onopentag: (name) => {
        if (path.push(name) > MAX_DEPTH) throw invalidCall(`nests more than ${MAX_DEPTH} elements`);
        text = '';
      },
      ontext: (part) => (text += part),
      onclosetag: (name) => {
        const place = path.join(' ');
        path.pop();
        if (place === 'methodCall methodName') call.method = text;
        else if (name === 'name') call.members.set((member = text), []);
        else if (MEMBER_VALUE.test(place) && text.trim() !== '') call.members.get(member)?.push(text);
        text = '';
      },
    },
    { xmlMode: true },
  );
  parser.end(xml);
  if (!/<\/methodCall>\s*$/.test(xml)) throw invalidCall('does not end with </methodCall>');
  return call;
}

export function invalidCall(fault: string): Problem {
  return new Problem('invalid_parameter', { detail: `the call ${fault}` });
}

/** A fault has the status 200, because pip ends with a traceback at any other. */
export function faultResponse({ status, message }: Problem): BodyResponse {
  return xmlResponse(`<fault>${value(struct({ faultCode: status, faultString: message }))}</fault>`);
}

/** @param structs an array of structures. */
export function arrayResponse(structs: readonly Record<string, string>[]): BodyResponse {
  const values = structs.map((members) => value(struct(members))).join('\n');
  return xmlResponse(`<params><param>${value(`<array><data>${values}</data></array>`)}</param></params>`);
}

function xmlResponse(content: string): BodyResponse {
  const xml = `<?xml version="1.0"?><methodResponse>${content}</methodResponse>`;
  return bodyResponse(Buffer.from(xml), { ...NO_STORE, 'Content-Type': 'text/xml; charset=utf-8' });
}

function struct(members: Record<string, string | number>): string {
  const written = Object.entries(members).map(([name, member]) => {
    const content =
      typeof member === 'number' ? `<int>${member}</int>` : `<string>${escape(member)}</string>`;
    return `<member><name>${name}</name>${value(content)}</member>`;
  });
  return `<struct>${written.join('')}</struct>`;
}

function value(content: string): string {
  return `<value>${content}</value>`;
}

/** Characters that XML 1.0 does not allow become U+FFFD. */
function escape(text: string): string {
  return text
    .replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '\uFFFD')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;');
}
