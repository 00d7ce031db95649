import { hash } from 'node:crypto';

/**
 * Version of the response format. Increment it whenever an equal request to the same index gets another body or other
 * headers, such as a new member or a different order of results. A newer release may serve the same index. Without the
 * increment, clients would then get 304 for a changed response.
 */
export const FORMAT_VERSION = 7;

/**
 * Equal for equal requests to the same snapshot, on all replicas with the same format. The tag is weak, because it
 * covers all encodings. The index begins with the registry's slug, so two registries never share a tag.
 * @param request the normalised request.
 */
export function etagOf(index: string, request: string, format = FORMAT_VERSION): string {
  return `W/"${hash('sha1', `${format} ${index} ${request}`, 'base64url')}"`;
}

/** The tag of a response that is the same for all snapshots. */
export function contentTag(body: Buffer): string {
  return `W/"${hash('sha1', body, 'base64url')}"`;
}

/** Whether `If-None-Match` matches a tag, by the weak comparison of RFC 9110, section 13.1.2. */
export function matches(condition: string | undefined, etag: string): boolean {
  if (condition === undefined) return false;
  if (condition === '*') return true;
  const opaque = (tag: string) => tag.trim().replace(/^W\//, '');
  return condition.split(',').some((candidate) => opaque(candidate) === opaque(etag));
}
