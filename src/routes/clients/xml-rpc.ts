import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { Problem } from '../../http/problems/problem.js';
import { escapeXml, NO_STORE, xmlResponse, type BodyResponse } from '../../http/response/response.js';

export const MAX_CALL_BYTES = 64 * 1024;

/** Elements from `methodCall` to a `string` in an array in a member of a structure. */
const MAX_DEPTH = 11;

/** The path to a text of a member: the member itself, or an entry of its array. */
const MEMBER_TEXT = /^methodCall params param value struct member value( array data value)?( string)?$/;

/**
 * Reads a call of XML-RPC. Knows no entities but those of XML itself. The rest of a body that is too large is received
 * and dropped, because a client that is still sending would not read the response. Chunks are copied, because one of a
 * single byte holds hundreds.
 * @returns the method, and the texts of each member of the structures among the parameters.
 * @throws {Problem} 400
 */
export async function readCall(request: IncomingMessage) {
  const received = Buffer.alloc(MAX_CALL_BYTES);
  let bytes = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      chunk.copy(received, bytes);
      bytes += chunk.length;
    }
  } catch {
    throw invalidCall('was cut off');
  }
  if (bytes > MAX_CALL_BYTES) throw invalidCall(`has more than ${MAX_CALL_BYTES} bytes`);
  const body = received.subarray(0, bytes);
  if (!isUtf8(body)) throw invalidCall('is not UTF-8');
  const { Parser } = await import('htmlparser2');
  const members = new Map<string, string[]>();
  const path: string[] = [];
  let [method, member, text] = ['', '', ''];
  const reader = {
    onprocessinginstruction: (name: string) => {
      if (name.startsWith('!')) throw invalidCall('has a document type');
    },
    onopentag: (name: string) => {
      if (path.push(name) > MAX_DEPTH) throw invalidCall(`nests more than ${MAX_DEPTH} elements`);
      text = '';
    },
    ontext: (part: string) => (text += part),
    onclosetag: () => {
      const place = path.join(' ');
      if (place === 'methodCall methodName') method = text;
      else if (place.endsWith('struct member name')) members.set((member = text), []);
      else if (MEMBER_TEXT.test(place) && text.trim() !== '') members.get(member)?.push(text);
      path.pop();
      text = '';
    },
  };
  const xml = body.toString();
  new Parser(reader, { xmlMode: true }).end(xml);
  if (!xml.trimEnd().endsWith('</methodCall>')) throw invalidCall('does not end with </methodCall>');
  return { method, members };
}

export function invalidCall(fault: string): Problem {
  return new Problem('invalid_parameter', { detail: `the call ${fault}` });
}

/** A fault has the status 200: pip ends with a traceback at any other. */
export function faultResponse({ status, message }: Problem): BodyResponse {
  return answer(`<fault>${struct({ faultCode: status, faultString: message })}</fault>`);
}

export function arrayResponse(structs: readonly Record<string, string>[]): BodyResponse {
  const data = `<data>${structs.map(struct).join('\n')}</data>`;
  return answer(`<params><param><value><array>${data}</array></value></param></params>`);
}

function answer(content: string): BodyResponse {
  const xml = `<?xml version="1.0"?><methodResponse>${content}</methodResponse>`;
  return xmlResponse(xml, 'text/xml', NO_STORE);
}

/** A value without a type is a string. */
function struct(members: Readonly<Record<string, string | number>>): string {
  const written = Object.entries(members).map(([name, member]) => {
    const value = typeof member === 'number' ? `<int>${member}</int>` : escapeXml(member);
    return `<member><name>${name}</name><value>${value}</value></member>`;
  });
  return `<value><struct>${written.join('')}</struct></value>`;
}
