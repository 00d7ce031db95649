import { REQUEST_ID } from '../request/request-context.js';

/** The headers that the OpenAPI document describes. Scripts of any origin may read them. */
export const HEADERS = {
  [REQUEST_ID]: 'Identifies the request in logs. The id of a client (1 to 64 of `A-Za-z0-9_.:-`) is kept.',
  'RateLimit-Policy': 'The rate limit and its name: `q` points in `w` seconds (IETF draft), if there is one.',
  RateLimit: '`r` points remain; the limit resets in `t` seconds. Most requests cost one point.',
  'Retry-After': 'Seconds until a retry may succeed.',
  'X-Snapshot': 'The id of the snapshot that served the response.',
  'X-Snapshot-Changes':
    'How many packages differ from the previous snapshot, if it was compared: `added=123, removed=45, updated=6`.',
  'X-Results-Truncated': '`true` if more names match.',
  Link: 'Pages of the same snapshot, if they exist (RFC 8288): `next`, and for `/browse` also `first`, `prev` and `last`.',
  'Content-Location': 'The package by its listed name, if that differs.',
  'Last-Modified': 'When the snapshot was taken.',
  'Content-Disposition': 'A file name with registry and snapshot.',
};

export type HeaderName = keyof typeof HEADERS;
