import { expect } from 'chai';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
import type { Service } from './service.js';

type Reader = Pick<Service, 'get'>;

/** Names of the results of `/search`, `/similar`, `/browse` or `/changes`, in their order. */
export async function namesAt(service: Reader, path: string): Promise<string[]> {
  const { status, text, body } = await service.get(path);
  expect(status, text).to.equal(200);
  return (body.results as PackageEntry[]).map(({ name }) => name);
}

/** Expects that a search finds exactly these names, in this order. @param params such as `&match=prefix`. */
export async function expectSearch(service: Reader, q: string, names: readonly string[], params = '') {
  expect(await namesAt(service, `/search?q=${encodeURIComponent(q)}${params}`), q).to.deep.equal(names);
}

/**
 * Expects what brute force finds in a page of `/search` or `/similar`.
 * @param text the query, with the white space that the service must trim.
 * @param find returns all results for the trimmed query, in order.
 * @returns the results on the page.
 */
export async function expectAsOracle<T extends object>(
  service: Reader,
  endpoint: 'search' | 'similar',
  { text, limit, params = '' }: { text: string; limit: number; params?: string },
  find: (query: string) => readonly T[],
): Promise<readonly T[]> {
  const member = endpoint === 'search' ? 'query' : 'name';
  const parameter = endpoint === 'search' ? 'q' : 'name';
  const path = `/${endpoint}?${parameter}=${encodeURIComponent(text)}&limit=${limit}${params}`;
  const { status, body, headers } = await service.get(path);
  const query = text.replace(/^\p{White_Space}+|\p{White_Space}+$/gu, '');
  const all = find(query);
  const why = `${JSON.stringify(text)} by ${path}`;
  expect(status, why).to.equal(200);
  const results = all.slice(0, limit);
  const total = { total: Math.min(all.length, 10_000), total_is_exact: all.length <= 10_000 };
  const counted = params.includes('total=true') && total;
  expect(body, why).to.deep.equal({ [member]: query, count: results.length, ...counted, results });
  expect(headers.get('X-Results-Truncated'), why).to.equal(all.length > limit ? 'true' : null);
  return results;
}
