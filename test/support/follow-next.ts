import { expect } from 'chai';
import type { Service, TestResponse } from './service.js';

/** The targets of the `Link` header, by relation. */
export function linksOf({ headers }: Pick<TestResponse, 'headers'>): Record<string, string> {
  const links = headers.get('Link')?.split(', ') ?? [];
  return Object.fromEntries(
    links.map((link) => {
      const [, target = '', relation = ''] = /^<(\?[^>]+)>; rel="(\w+)"$/.exec(link) ?? [];
      return [relation, target];
    }),
  );
}

/** The cursor in the link to the next page; null on the last one. */
export function cursorOf(answer: Pick<TestResponse, 'headers'>): string | null {
  return new URLSearchParams(linksOf(answer)['next']).get('after');
}

/** All results from `path` on, by `next`. @param between as for `followNext`. */
export async function walk<T>(
  service: Pick<Service, 'get'>,
  path: string,
  between?: (pages: number) => Promise<void>,
): Promise<T[]> {
  const answers = await followNext(service, path, between);
  return answers.flatMap(({ body }) => body.results as T[]);
}

/** Reads all pages from `path` on, by `next`. @param between runs after each page, with its number. */
export async function followNext(
  service: Pick<Service, 'get'>,
  path: string,
  between: (pages: number) => Promise<void> = () => Promise.resolve(),
): Promise<TestResponse[]> {
  const answers: TestResponse[] = [];
  const [endpoint = ''] = path.split('?');
  for (let next: string | undefined = path; next !== undefined;) {
    const answer: TestResponse = await service.get(next);
    expect(answer.status, `${next}: ${answer.text.slice(0, 300)}`).to.equal(200);
    answers.push(answer);
    const { next: target } = linksOf(answer);
    next = target && endpoint + target;
    await between(answers.length);
  }
  return answers;
}
