import { Client, errors, type DiagnosticResult } from '@elastic/elasticsearch';
import { expect } from 'chai';
import { ElasticsearchUnavailableError } from '../../../src/elasticsearch/elasticsearch-errors.js';
import { DatasetError } from '../../../src/lists/fetch/dataset-error.js';
import { failureReason, reasonOf } from '../../../src/rebuild/failure-reason.js';

function responseError(statusCode: number, body: unknown): Error {
  return new errors.ResponseError({
    body,
    statusCode,
    headers: {},
    warnings: null,
    meta: {},
  } as DiagnosticResult);
}

describe('The reason of a failure', () => {
  it('is one line: the message of the error with those of its causes', () => {
    const cause = new Error('no space\n on node es-1.internal', { cause: new Error('no space') });
    expect(reasonOf(new Error('a step failed', { cause }))).to.equal(
      'a step failed: no space on node es-1.internal',
    );
    const refused = [new Error('refused by ::1'), new Error('refused by 127.0.0.1')];
    const both = new ElasticsearchUnavailableError('the connection failed', {
      cause: new AggregateError(refused),
    });
    expect(reasonOf(both)).to.equal('the connection failed: refused by ::1; refused by 127.0.0.1');
    expect(reasonOf(new Error('our own words'))).to.equal('our own words');
  });

  it('is only the message of a rejected dataset', () => {
    const reason = 'line 2: url "ftp://registry.example:21/a" is not http(s)';
    expect(reasonOf(new DatasetError(reason, { cause: new Error('why') }))).to.equal(reason);
  });

  it('states that Elasticsearch does not respond', async () => {
    const client = new Client({ node: 'http://localhost:1', maxRetries: 0 });
    const error = (await client.info().catch((cause: unknown) => cause)) as Error;
    await client.close();
    expect(reasonOf(error)).to.match(/^Elasticsearch does not respond: connect ECONNREFUSED \S+:1/);
  });

  it('contains the status and the reason in a response of Elasticsearch', () => {
    const why = { type: 'validation_exception', reason: 'too many\nshards' };
    expect(reasonOf(responseError(400, { error: { ...why, root_cause: [why] } }))).to.match(
      /^Elasticsearch responded with 400: validation_exception .*too many shards$/,
    );
    const unknown = { type: 'illegal_argument_exception', reason: 'unknown setting [index.x]' };
    for (const root_cause of [[], [unknown]])
      expect(reasonOf(responseError(400, { error: { ...unknown, root_cause } }))).to.match(
        /^Elasticsearch responded with 400: illegal_argument_exception.*: unknown setting \[index\.x\]$/,
      );
    for (const other of ['<address>Apache</address>', { error: 'x' }, undefined])
      expect(reasonOf(responseError(503, other))).to.match(/^Elasticsearch responded with 503: [^\n]+$/);
  });

  it('tells that a key without the rights must be made again', () => {
    const reason = 'action [indices:data/write/update] is unauthorized for API key id [x]';
    expect(reasonOf(responseError(403, { error: { type: 'security_exception', reason } }))).to.equal(
      'ELASTICSEARCH_REBUILD_API_KEY does not allow indices:data/write/update: npm run keys makes a new one',
    );
  });

  it('contains no secret, not even a part of one at its end', () => {
    const secret = 'a-secret-change-me';
    const urls = `redirected to https://user:password@data.internal/x.csv?token=${secret}`;
    expect(failureReason(new Error(urls), [secret])).to.equal(
      'redirected to https://[redacted]@data.internal/x.csv?token=[redacted]',
    );
    const reason = failureReason(new Error('x'.repeat(290) + secret), [secret]);
    expect(reason).to.have.length(300).and.not.to.include(secret.slice(0, 4));
  });
});
