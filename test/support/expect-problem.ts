import { expect } from 'chai';
import type { Service, TestResponse } from './service.js';

/** Asserts that each of these paths gets 400 `invalid_parameter`. */
export async function expectInvalid(service: Pick<Service, 'get'>, ...paths: string[]): Promise<void> {
  for (const path of paths) expectProblem(await service.get(path), 400, 'invalid_parameter');
}

/** Asserts that a response is this RFC 9457 problem, and returns its detail. */
export function expectProblem(answer: TestResponse, status: number, code: string): string {
  expect(answer.status, answer.text).to.equal(status);
  expect(answer.headers.get('Content-Type')).to.match(/^application\/problem\+json/);
  expect(answer.body).to.include({ type: 'about:blank', status, code });
  expect(answer.body.title).to.be.a('string').that.is.not.empty;
  expect(answer.body.detail).to.be.a('string').that.is.not.empty;
  expect(answer.text, 'contains a stack, host or engine query').not.to.match(
    /127\.0\.0\.1|node_modules|\bat \w+ \(|_msearch/,
  );
  if (status === 503 || status === 429) {
    expect(Number(answer.headers.get('Retry-After'))).to.be.within(1, 3600);
  }
  return answer.body.detail as string;
}
