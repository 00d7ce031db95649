import { expect } from 'chai';
import type { RawResponse } from './raw-connection.js';
import type { TestResponse } from './service.js';

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

/** Asserts that the last response of a connection is this problem, with the headers of all responses. */
export function expectRawProblem(response: RawResponse, status: number, code: string): void {
  const { headers, text } = response;
  expectProblem({ ...response, body: JSON.parse(text) as unknown }, status, code);
  expect(JSON.parse(text)).to.have.all.keys('type', 'title', 'status', 'detail', 'code');
  expect(headers.get('Content-Type')).to.equal('application/problem+json');
  expect(headers.get('Cache-Control')).to.equal('no-store');
  expect(headers.get('X-Request-Id')).to.match(/^[\w.:-]{1,64}$/);
  expect(headers.get('X-Content-Type-Options')).to.equal('nosniff');
  expect(headers.get('Content-Security-Policy')).to.match(/^default-src 'none'/);
  expect(headers.get('Access-Control-Allow-Origin')).to.equal('*');
  expect(headers.has('Strict-Transport-Security')).to.equal(false);
  expect(headers.get('Date')).to.match(/GMT$/);
  expect(headers.get('Connection')).to.equal('close');
}
