import { errors, type DiagnosticResult } from '@elastic/elasticsearch';
import { expect } from 'chai';
import { secretsIn } from '../../../src/config/secrets.js';
import { describeCrash } from '../../../src/util/process-end.js';
import { createLogger } from '../../../src/util/log.js';
import { createRedactor } from '../../../src/util/redact.js';

/** A secret in each variable, in the form that is hardest to find. */
const ENV = {
  ELASTICSEARCH_URL: 'http://elastic:engine%2Fhush%22@one:9200,http://elastic:engine%2Fhush%22@two:9200',
  ELASTICSEARCH_API_KEY: Buffer.from('an-id:reader-hush').toString('base64'),
  ELASTICSEARCH_REBUILD_API_KEY: Buffer.from('an-id:builder-hush').toString('base64'),
  ELASTICSEARCH_ADMIN_PASSWORD: 'admin-hush',
  REDIS_URL: 'redis://:redis%40hush@cache:6379/0',
  DATASET_URL: 'https://reader:dataset-hush@registry.example/names.csv?token=token%2Bhush&part=1',
  WEIGHTS_URL: ' https://registry.example/weights.csv?token=weights-hush\n',
  REBUILD_SECRET: 'rebuild "hush" \\ 🚀',
  BYPASS_SECRET: 'bypass-hush$&',
};

/** The same secrets as they are sent, stored or displayed. */
const FORMS = [
  'engine%2Fhush%22',
  'engine/hush"',
  Buffer.from('elastic:engine/hush"').toString('base64'),
  ENV.ELASTICSEARCH_API_KEY,
  'reader-hush',
  ENV.ELASTICSEARCH_REBUILD_API_KEY,
  'builder-hush',
  'admin-hush',
  'weights-hush',
  'redis%40hush',
  'redis@hush',
  'dataset-hush',
  Buffer.from('reader:dataset-hush').toString('base64'),
  'token%2Bhush',
  'token+hush',
  'rebuild "hush" \\ 🚀',
  encodeURIComponent('rebuild "hush" \\ 🚀'),
  'bypass-hush$&',
];

/** The parsed line that a logger with these secrets writes. */
function logged(write: (log: ReturnType<typeof createLogger>) => void): Record<string, unknown> {
  const lines: string[] = [];
  const destination = { write: (line: string) => lines.push(line) };
  write(createLogger('trace', { secrets: secretsIn(ENV), destination }));
  expect(lines).to.have.length(1);
  for (const form of FORMS) {
    // Verbatim, and escaped as in JSON.
    expect(lines[0]).not.to.contain(form);
    expect(lines[0]).not.to.contain(JSON.stringify(form).slice(1, -1));
  }
  expect(lines[0]).not.to.contain('hush');
  return JSON.parse(lines[0] as string) as Record<string, unknown>;
}

describe('The log', () => {
  for (const form of FORMS) {
    it(`does not contain ${form} from any source`, () => {
      const everywhere = () => {
        const cause = Object.assign(new Error(`inner ${form}`), { command: { name: 'auth', args: [form] } });
        const outer = new AggregateError([cause, new Error(form)], `outer ${form}`, { cause });
        return Object.assign(outer, { input: form, headers: { authorization: `ApiKey ${form}` } });
      };
      logged((log) => log.warn({ err: everywhere() }, `failed: ${form}`));
      logged((log) => log.error(everywhere()));
      const nested = { list: [form, { error: everywhere() }] };
      logged((log) => log.info({ url: `https://h/${form}`, nested }));
      logged((log) => log.debug(`said ${form}`));
      logged((log) => log.trace({ error: everywhere() }));
      expect(describeCrash(everywhere(), secretsIn(ENV))).not.to.contain(form);
    });
  }

  it('keeps the details of an error and of its causes', () => {
    const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED', port: 6379 });
    const error = Object.assign(new TypeError('no way', { cause: refused }), { statusCode: 503, body: 'x' });
    const { err, msg, level } = logged((log) => log.error({ err: error }, 'it failed'));
    expect({ msg, level }).to.deep.equal({ msg: 'it failed', level: 50 });
    expect(err).to.have.all.keys('type', 'message', 'statusCode', 'stack', 'cause');
    expect(err).to.include({ type: 'TypeError', message: 'no way', statusCode: 503 });
    const { cause } = err as { cause: unknown };
    expect(cause).to.have.all.keys('type', 'message', 'code', 'stack');
    expect(cause).to.include({ type: 'Error', message: 'connect ECONNREFUSED', code: 'ECONNREFUSED' });
  });

  it('omits the request from an Elasticsearch error', () => {
    const headers = { authorization: 'unknown-hush' };
    const response = {
      body: { status: 401 },
      statusCode: 401,
      meta: {
        request: { params: { method: 'GET', path: '/?token=unknown-hush', headers } },
        connection: { url: new URL('http://elastic:unknown-hush@one:9200') },
      },
    } as unknown as DiagnosticResult;
    const lost = new errors.ConnectionError('lost', response, { redaction: { type: 'off' } });
    const cause = { response: lost };
    const { err } = logged((log) => log.error({ err: new errors.ResponseError(response), lost, cause }));
    expect(err).to.include({ type: 'ResponseError', statusCode: 401 });
  });

  it('truncates circular errors', () => {
    const error = new Error('circular');
    error.cause = error;
    const aggregate = new AggregateError([], 'circular');
    aggregate.errors.push(...Array.from({ length: 100 }, () => aggregate));
    const line = JSON.stringify(logged((log) => log.error({ err: error, aggregate })));
    expect(line).to.have.length.within(1000, 50_000);
    logged((log) => log.error({ err: new Error('x', { cause: { password: 'unknown-hush' } }) }));
    expect(describeCrash(error, []).split('caused by').length).to.be.lessThan(10);
  });

  it('keeps numbers, times and words that only resemble a secret', () => {
    const lines: string[] = [];
    const secrets = secretsIn({ REBUILD_SECRET: 'a', BYPASS_SECRET: '100', DATASET_URL: 'https://h/x?n=1' });
    const log = createLogger('info', { secrets, destination: { write: (line) => lines.push(line) } });
    const line = { total: 100, index: 'a-packages', msg: 'serving another snapshot' };
    const { msg, ...fields } = line;
    log.info(fields, msg);
    expect(JSON.parse(lines[0] ?? '')).to.include(line);
  });
});

describe('A redactor', () => {
  it('redacts the credentials of URLs that are not configured', () => {
    const redact = createRedactor([]);
    expect(redact('to ftp://u:p@h/x and https://token@h, HTTP://u:p@ss@h')).to.equal(
      'to ftp://[redacted]@h/x and https://[redacted]@h, HTTP://[redacted]@h',
    );
    for (const text of ['https://h/@scope/name', 'a@b.example', 'http://h?m=a@b', '://', '@', 'x://'])
      expect(redact(text)).to.equal(text);
  });

  it('redacts the whole of a secret that contains another one', () => {
    expect(createRedactor(['hush', 'hush-hush'])('is hush-hush')).to.equal('is [redacted]');
  });

  it('runs in time proportional to the length of the text', () => {
    const redact = createRedactor(secretsIn(ENV));
    for (const text of ['a', 'a.', '://', 'a://', 'http://a']) {
      const long = text.repeat(Math.ceil(1_000_000 / text.length));
      const began = performance.now();
      redact(long);
      expect(performance.now() - began, text).to.be.lessThan(1000);
    }
  });
});

describe('secretsIn', () => {
  it('returns nothing if nothing is secret', () => {
    const urls = { ELASTICSEARCH_URL: 'http://one:9200', REDIS_URL: 'redis://cache' };
    expect(secretsIn({ ...urls, REGISTRY_SLUG: 'debian', REBUILD_SECRET: '' })).to.deep.equal([]);
  });

  it('finds secrets in malformed URLs', () => {
    expect(secretsIn({ REDIS_URL: 'redis://u%zz:p%zzhush@h%zz' })).to.include('p%zzhush');
    expect(secretsIn({ DATASET_URL: 'https://token-hush@h/x' })).to.include('token-hush');
    expect(secretsIn({ DATASET_URL: 'not a url?k=hush,hush2' })).to.include('hush,hush2');
    const weights = secretsIn({ WEIGHTS_URL: 'https://u:weights-hush@h/x?token=token-hush' });
    expect(weights).to.include.members(['weights-hush', 'token-hush']);
  });

  it('finds the secrets of every address in a list', () => {
    const addresses = 'https://u:first-hush@h/a https://h/b?token=second-hush';
    expect(secretsIn({ DATASET_URL: addresses })).to.include.members(['first-hush', 'second-hush']);
  });

  it('finds the secret of an Authorization header without its scheme', () => {
    expect(secretsIn({ DATASET_AUTHORIZATION: 'Bearer hush.hush' })).to.include.members(['hush.hush']);
    const basic = Buffer.from('user:basic-hush').toString('base64');
    expect(secretsIn({ DATASET_AUTHORIZATION: `Basic ${basic}` })).to.include.members([basic, 'basic-hush']);
  });
});
