import { hash } from 'node:crypto';
import * as z from 'zod';
import type { Operation } from '../http/openapi/document.js';
import type { Handler } from '../http/request/request-context.js';
import type { PublicUrlReader } from '../http/request/public-url.js';
import { escapeXml, xmlResponse } from '../http/response/response.js';
import { SUGGESTIONS_TYPE } from './suggest.js';

const CONTENT_TYPE = 'application/opensearchdescription+xml';

/** Maximum length of a `ShortName` in OpenSearch 1.1. */
const MAX_SHORT_NAME = 16;

export const openSearchOperation: Operation = {
  id: 'getOpenSearchDescription',
  tag: 'Search',
  summary: 'A description of the searches, for address bars',
  description: 'OpenSearch 1.1, with absolute URLs of the page, of its suggestions and of `/search`.',
  response: {
    description: 'The description.',
    contentType: CONTENT_TYPE,
    schema: z.string(),
    example: '<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/"></OpenSearchDescription>',
  },
};

/** `GET /opensearch.xml`: lets browsers search from the address bar. */
export function openSearch(slug: string, publicUrlOf: PublicUrlReader): Handler {
  // The body depends on headers of the request.
  const headers = { 'Cache-Control': 'no-cache' };
  return ({ req }) => xmlResponse(describe(slug, publicUrlOf(req)), CONTENT_TYPE, headers);
}

/** A name for each slug. Browsers offer the engine of a link until they know one with the title of the link. */
export function shortNameOf(slug: string): string {
  if (slug.length <= MAX_SHORT_NAME) return slug;
  // 9 + 1 + 6 characters. No slug has a tilde.
  return `${slug.slice(0, 9)}~${hash('sha1', slug, 'base64url').slice(0, 6)}`;
}

function describe(slug: string, base: string): string {
  const address = escapeXml(base);
  return `<?xml version="1.0" encoding="UTF-8"?>
<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">
  <ShortName>${shortNameOf(slug)}</ShortName>
  <Description>Packages of ${slug}, by any part of their name</Description>
  <Url type="text/html" template="${address}/?q={searchTerms}"/>
  <Url type="${SUGGESTIONS_TYPE}" rel="suggestions" template="${address}/suggest?q={searchTerms}"/>
  <Url type="application/json" template="${address}/search?q={searchTerms}"/>
  <Url type="${CONTENT_TYPE}" rel="self" template="${address}/opensearch.xml"/>
  <Image type="image/svg+xml">${address}/page/icon.svg</Image>
  <InputEncoding>UTF-8</InputEncoding>
  <OutputEncoding>UTF-8</OutputEncoding>
</OpenSearchDescription>
`;
}
