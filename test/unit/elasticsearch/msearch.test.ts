import { expect } from 'chai';
import {
  ElasticsearchUnavailableError,
  IndexClosedError,
  IndexGoneError,
  NodeUnavailableError,
  SearchRefusedError,
  ShardUnavailableError,
} from '../../../src/elasticsearch/elasticsearch-errors.js';
import { parseResponse } from '../../../src/elasticsearch/msearch.js';

const hit = (entry: string, ...clauses: string[]) => ({
  fields: { entry: [entry] },
  ...(clauses.length > 0 && { matched_queries: clauses }),
});

const complete = (...hits: object[]) => ({
  status: 200,
  timed_out: false,
  _shards: { failed: 0 },
  hits: { hits },
});

const parse = (...responses: unknown[]) =>
  parseResponse(JSON.stringify({ responses }), responses.length, 'asked-for');

describe('parseResponse', () => {
  it('returns the entries of each search with the number of exact ones', () => {
    const hits = [hit('AAAA', 'exact'), hit('BBBB', 'other'), hit('CCCC')];
    expect(parse(complete(...hits), complete())).to.deep.equal([
      { entries: ['AAAA', 'BBBB', 'CCCC'], exact: 1 },
      { entries: [], exact: 0 },
    ]);
  });

  it('reads a response without hits as none', () => {
    for (const hits of [undefined, {}])
      expect(parse({ ...complete(), hits })).to.deep.equal([{ entries: [], exact: 0 }]);
  });

  const failed = (status: number, type: string, rest: object = {}) => ({
    status,
    error: { type, reason: 'a reason', ...rest },
  });

  it('names an index that is gone or closed, as Elasticsearch does if it says so', () => {
    const kinds = [
      ['index_not_found_exception', IndexGoneError],
      ['index_closed_exception', IndexClosedError],
    ] as const;
    for (const [type, error] of kinds) {
      expect(() => parse(failed(404, type)))
        .to.throw(error)
        .with.property('index', 'asked-for');
      const named = failed(404, type, { index: 'named' });
      expect(() => parse(complete(), named))
        .to.throw(error)
        .with.property('index', 'named');
    }
  });

  const root_cause = [{ type: 'the_cause', reason: 'the reason of the cause' }];

  const failures: [what: string, response: object, error: new (...args: never[]) => Error, text: string][] = [
    ['status 500', failed(500, 'a_type'), ShardUnavailableError, 'a_type'],
    ['status 503', failed(503, 'outer', { root_cause }), ShardUnavailableError, 'the_cause'],
    ['status 429', failed(429, 'a_type'), ElasticsearchUnavailableError, 'a_type'],
    ['status 400', failed(400, 'outer', { root_cause: [] }), SearchRefusedError, 'outer'],
    ['status 499', failed(499, 'outer', { root_cause }), SearchRefusedError, 'the_cause'],
    ['a timeout', { ...complete(), timed_out: true }, ShardUnavailableError, 'timed out'],
    ['no word about a timeout', { ...complete(), timed_out: undefined }, ShardUnavailableError, 'timed out'],
    ['a failed shard', { ...complete(), _shards: { failed: 1 } }, ShardUnavailableError, 'shard failed'],
    ['no word about shards', { ...complete(), _shards: undefined }, ShardUnavailableError, 'shard failed'],
  ];
  for (const [what, response, error, text] of failures) {
    it(`throws ${error.name} for ${what} in any of the searches`, () => {
      for (const responses of [
        [response, complete()],
        [complete(), response],
      ])
        // prettier-ignore
        expect(() => parse(...responses))
          .to.throw(error, text)
          .with.property('constructor', error);
    });
  }

  it('keeps the reason of Elasticsearch as the cause, for the log', () => {
    const response = failed(400, 'outer', { root_cause });
    expect(() => parse(response))
      .to.throw()
      .with.nested.property('cause.message', 'the reason of the cause');
  });

  it('throws NodeUnavailableError for text that is not a response to each search', () => {
    const good = complete();
    const texts = ['', '<html>', 'null', '{}', '{"responses":[', '{"responses":[]}', '[]', '7'];
    for (const text of [...texts, JSON.stringify({ responses: [good, good] })])
      expect(() => parseResponse(text, 1, 'asked-for'), text).to.throw(NodeUnavailableError);
  });
});
