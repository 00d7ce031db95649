import { hash } from 'node:crypto';

/**
 * The version of the bytes that the service makes of a generation. Raise it with every change by which an equal request
 * to the same index gets another body or other headers: a member added, renamed or written differently, another order of
 * results. An index outlives the release that built it, and clients would get 304 for a response that has changed.
 */
export const FORMAT_VERSION = 3;

/**
 * Equal for equal requests to the same generation, on every replica that writes responses in the same format. Weak,
 * because it stands for all encodings.
 * @param generation its index, whose name begins with the registry's slug: two registries never share one.
 * @param request the normalised request.
 */
export function etagOf(generation: string, request: string, format = FORMAT_VERSION): string {
  return `W/"${hash('sha1', `${format} ${generation} ${request}`, 'base64url')}"`;
}

/** Whether `If-None-Match` names the answer that the client would get: the weak comparison of RFC 9110, section 13.1.2. */
export function matches(condition: string, etag: string): boolean {
  if (condition === etag || condition === '*') return true;
  return condition.split(',').some((candidate) => opaque(candidate.trim()) === opaque(etag));
}

function opaque(etag: string): string {
  return etag.startsWith('W/') ? etag.slice(2) : etag;
}
