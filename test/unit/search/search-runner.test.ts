import { rejects } from 'node:assert/strict';
import { expect } from 'chai';
import { ConnectionFailedError } from '../../../src/elasticsearch/elasticsearch-errors.js';
import { createLogger } from '../../../src/util/log.js';
import { ConcurrencyLimiter } from '../../../src/search/concurrency-limiter.js';
import { SearchRunner } from '../../../src/search/search-runner.js';

describe('SearchRunner', () => {
  it('logs once that there are too many open files, and no other failure of a connection', async () => {
    const lines: string[] = [];
    const log = createLogger('info', { destination: { write: (line) => void lines.push(line) } });
    const limiter = new ConcurrencyLimiter({ running: 1, waiting: 9 });
    const runner = new SearchRunner({ search: limiter, similar: limiter }, undefined as never, log);
    const fail = (error: Error) =>
      rejects(
        runner.run({ requestId: '', index: '' }, () => Promise.reject(error)),
        error,
      );
    const failed = (code: string) =>
      new ConnectionFailedError('the connection failed', { cause: Object.assign(new Error(code), { code }) });
    for (const error of [failed('ECONNREFUSED'), new Error('without a cause')]) await fail(error);
    expect(lines).to.deep.equal([]);
    for (const code of ['EMFILE', 'EMFILE', 'ENFILE']) await fail(failed(code));
    expect(lines).to.have.lengthOf(1);
    expect(lines[0]).to.contain('too many open files');
  });
});
