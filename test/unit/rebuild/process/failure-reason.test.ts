import { Client, errors, type DiagnosticResult } from '@elastic/elasticsearch';
import { expect } from 'chai';
import { ElasticsearchUnavailableError } from '../../../../src/elasticsearch/elasticsearch-errors.js';
import { DatasetError } from '../../../../src/lists/dataset-error.js';
import { detailsOf, failureKind, publicReason } from '../../../../src/rebuild/process/failure-reason.js';
import { LockLostError } from '../../../../src/rebuild/process/lock.js';
import { redactAddresses } from '../../../../src/lists/redact-addresses.js';
import { ProcessFailedError } from '../../../../src/rebuild/process/rebuild-process.js';

describe('The reason of a failure', () => {
  const worded: [message: string, shown: string][] = [
    ['connect ECONNREFUSED 10.1.2.3:9200', 'connect ECONNREFUSED (address hidden)'],
    ['connect ECONNREFUSED ::1:9200', 'connect ECONNREFUSED (address hidden)'],
    ['getaddrinfo ENOTFOUND es.internal', 'getaddrinfo ENOTFOUND (address hidden)'],
    ['getaddrinfo EAI_AGAIN es-1', 'getaddrinfo EAI_AGAIN (address hidden)'],
    [
      'Connect Timeout Error (attempted address: data.internal:443, timeout: 10000ms)',
      'Connect Timeout Error (attempted address: (address hidden), timeout: 10000ms)',
    ],
    ['redirected to https://user@data.internal/x.csv?token=1', 'redirected to (address hidden)'],
    ['[node-1][10.0.0.5:9300][indices:data/write]', '[node-1][(address hidden)][indices:data/write]'],
    ['no route to fe80::1ff:890a%eth0 or 2001:db8::7', 'no route to (address hidden) or (address hidden)'],
    ['at 12:30:45, see line 3:', 'at 12:30:45, see line 3:'],
    ['{node-1}{[::1]}{[fe80::1%eth0]:9300}', '{node-1}{(address hidden)}{(address hidden)}'],
    ["EACCES: permission denied, open '/srv/data.csv'", "EACCES: permission denied, open '(address hidden)'"],
    ['the merge made no progress for 10 minutes', 'the merge made no progress for 10 minutes'],
    ['[1:159] [remove_index] unknown field', '[1:159] [remove_index] unknown field'],
  ];
  for (const [message, shown] of worded) {
    it(`hides addresses: ${message}`, () => {
      expect(publicReason(new Error(message))).to.equal(shown);
    });
  }

  it('is the code of an error that names hosts in prose', () => {
    const error = Object.assign(new Error("Host: es.internal. is not in the cert's altnames: DNS:a"), {
      code: 'ERR_TLS_CERT_ALTNAME_INVALID',
    });
    expect(redactAddresses(error)).to.equal('ERR_TLS_CERT_ALTNAME_INVALID');
  });

  it('keeps values from rows of the dataset', () => {
    const reason = 'line 2: url "ftp://registry.example:21/a" is not http(s)';
    expect(publicReason(new DatasetError(reason))).to.equal(reason);
  });

  it('states that Elasticsearch does not respond', async () => {
    const client = new Client({ node: 'http://localhost:1', maxRetries: 0 });
    const error = (await client.info().catch((cause: unknown) => cause)) as Error;
    await client.close();
    expect(error.message).to.contain('ECONNREFUSED');
    expect(publicReason(error)).to.equal('Elasticsearch does not respond');
  });

  it('contains only the error type from a response of Elasticsearch or of a proxy', () => {
    const ONLY_STATUS = 'Elasticsearch responded with 503';
    const closed = { type: 'node_closed_exception', reason: 'node closed {es01-secret}{kQ12}' };
    const responses: [body: unknown, shown: string][] = [
      [{ error: closed }, `${ONLY_STATUS}: node_closed_exception`],
      ['<address>Apache at es-secret.internal.example Port 9200</address>', ONLY_STATUS],
      [{ error: { type: 'es-secret.internal.example' } }, ONLY_STATUS],
      [{ error: 'es-secret.internal.example' }, ONLY_STATUS],
      [undefined, ONLY_STATUS],
    ];
    for (const [body, shown] of responses) {
      const result = { body, statusCode: 503, headers: {}, warnings: null, meta: {} } as DiagnosticResult;
      expect(publicReason(new errors.ResponseError(result))).to.equal(shown);
    }
  });

  it('has a kind for metrics, which is no free text', () => {
    const response = { statusCode: 401, body: {}, headers: {}, warnings: null, meta: {} } as DiagnosticResult;
    const kinds: [error: Error, kind: string][] = [
      [new DatasetError('line 2: name is empty'), 'dataset'],
      [new errors.ResponseError(response), 'credentials'],
      [new errors.TimeoutError('late'), 'elasticsearch'],
      [new ElasticsearchUnavailableError('late'), 'elasticsearch'],
      [new LockLostError(), 'lock'],
      [new ProcessFailedError('killed'), 'process'],
      [new Error('any'), 'other'],
    ];
    for (const [error, kind] of kinds) expect(failureKind(error), error.name).to.equal(kind);
  });

  it('has details for operators: the messages of Elasticsearch or a library, in one line', () => {
    const cause = new Error('no space\n on node es-1.internal');
    expect(detailsOf(new Error('a step failed', { cause }))).to.equal('no space on node es-1.internal');
    const refused = [new Error('refused by ::1'), new Error('refused by 127.0.0.1')];
    const failed = new ElasticsearchUnavailableError('the connection failed', {
      cause: new AggregateError(refused),
    });
    expect(detailsOf(failed)).to.equal('refused by ::1; refused by 127.0.0.1');
    const body = { error: { type: 'validation_exception', reason: 'too many shards' } };
    const response = { statusCode: 400, body, headers: {}, warnings: null, meta: {} } as DiagnosticResult;
    expect(detailsOf(new errors.ResponseError(response))).to.equal('too many shards');
    expect(detailsOf(new Error('our own words'))).to.equal('');
  });

  it('has at most 300 characters', () => {
    expect(publicReason(new Error('x'.repeat(1000)))).to.have.length(300);
  });
});
