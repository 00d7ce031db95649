// Reads pages with the generated types and prints them as JSON again. The argument is the address of the service.
import createClient from 'openapi-fetch';
import type { components, paths } from './schema.js';

const api = createClient<paths>({ baseUrl: process.argv[2] ?? '', headers: { Accept: 'application/json' } });

async function dataOf<T>(response: Promise<{ data?: T; error?: unknown }>): Promise<T> {
  const { data, error } = await response;
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

const alpha: components['schemas']['Package'] = await dataOf(
  api.GET('/packages/{name}', { params: { path: { name: 'alpha' } } }),
);
const pages = [
  await dataOf(api.GET('/browse')),
  await dataOf(api.GET('/browse', { params: { query: { page: 3_000_000_000 } } })),
  await dataOf(api.GET('/search', { params: { query: { q: 'alpha' } } })),
  await dataOf(api.GET('/search', { params: { query: { q: 'alpha', sort: 'weight', limit: 2 } } })),
  alpha,
  await dataOf(api.GET('/lookup', { params: { query: { name: ['alpha', 'none'] } } })),
  await dataOf(api.GET('/similar', { params: { query: { name: 'alpah' } } })),
  await dataOf(api.GET('/changes')),
  await dataOf(api.GET('/stats')),
  await dataOf(api.GET('/health')),
];
console.log(JSON.stringify(pages));
