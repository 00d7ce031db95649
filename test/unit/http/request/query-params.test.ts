import { expect } from 'chai';
import fc from 'fast-check';
import * as z from 'zod';
import { memoized, parseParams } from '../../../../src/http/request/query-params.js';
import { browseParams } from '../../../../src/routes/browse.js';
import { rebuildParams } from '../../../../src/routes/rebuild.js';
import { queryText, searchParams } from '../../../../src/routes/search.js';
import { secretParams } from '../../../../src/http/auth/secret-auth.js';
import { Problem } from '../../../../src/http/problems/problem.js';

type Schema = Parameters<typeof parseParams>[0];

function expectRefused(schema: Schema, querystring: string, message: string): void {
  expect(() => parseParams(schema, querystring), querystring)
    .to.throw(Problem)
    .that.includes({ status: 400, code: 'invalid_parameter', message });
}

/** Expects that each query string is parsed like this. */
function expectParsed(schema: Schema, results: Record<string, object>): void {
  for (const [querystring, params] of Object.entries(results))
    expect(parseParams(schema, querystring), querystring).to.deep.equal(params);
}

/** Parameters of `/search` that are not given. */
const DEFAULTS = { limit: 250, match: 'contains', total: 'false' };

/** Expects that `/search` reads these queries from these percent-encoded texts. */
function expectQueries(queries: Record<string, string>): void {
  for (const [text, q] of Object.entries(queries))
    expectParsed(searchParams, { [`q=${text}`]: { ...DEFAULTS, q } });
}

const NOT_POSITIVE = 'must be a whole number from 1 in plain decimal digits';
const NOT_POSITIVE_TEXTS = [
  '', '0', '000', '-1', '%2B1', '+1', '1.0', '1.5', '1e3', '0x10', '%201', '1%20', '1_000', '1,000', 'ten', 'NaN', 'Infinity',
  '%D9%A3', '1%0A', '1%00', 'null', 'undefined',
]; // prettier-ignore

describe('parseParams for /browse', () => {
  it('parses page and limit, with defaults', () => {
    expectParsed(browseParams, {
      '': { page: 1, limit: 200 },
      'page=0012&limit=50': { page: 12, limit: 50 },
    });
  });

  it('caps limit at the maximum', () => {
    for (const limit of ['500', '501', '9'.repeat(400)])
      expectParsed(browseParams, { [`limit=${limit}`]: { page: 1, limit: 500 } });
  });

  it('accepts only pages that are exact integers', () => {
    const largest = Number.MAX_SAFE_INTEGER;
    expectParsed(browseParams, { [`page=${largest}`]: { page: largest, limit: 200 } });
    for (const page of ['9007199254740992', '9007199254740993', '9'.repeat(400)])
      expectRefused(browseParams, `page=${page}`, 'page is too large to be an exact integer');
  });

  it('rejects values that are not positive integers in plain decimal digits', () => {
    for (const name of ['page', 'limit'])
      for (const text of NOT_POSITIVE_TEXTS)
        expectRefused(browseParams, `${name}=${text}`, `${name} ${NOT_POSITIVE}`);
  });

  it('rejects a parameter that is given twice, even with the same value', () => {
    expectRefused(browseParams, 'page=1&page=1', 'page must be given once');
  });

  it('ignores unknown parameters, even repeated ones', () => {
    const querystring = 'x=1&x=2&PAGE=3&page[]=4&__proto__=5&constructor=6&q=a&secret=b&=7&&page=2';
    expectParsed(browseParams, { [querystring]: { page: 2, limit: 200 } });
  });
});

describe('parseParams for /search', () => {
  const LENGTH = 'q must have 2 to 100 characters';

  it('decodes q to its characters, whatever their case', () => {
    const special = '*?%_\\"🚀\0';
    expectQueries({
      '%40Babel%2Fcore': '@Babel/core',
      'g%2B%2B': 'g++',
      'a+b': 'a b',
      '100%': '100%',
      [encodeURIComponent(special)]: special,
    });
  });

  it('trims white space at both ends before measuring the length', () => {
    expectQueries({
      [encodeURIComponent('\t\n\u00a0\u0085 a b \r\u2003\u3000')]: 'a b',
      // U+FEFF is not White_Space, although JavaScript trims it.
      [encodeURIComponent('\ufeffa b\ufeff')]: '\ufeffa b\ufeff',
      [`+${'x'.repeat(100)}+`]: 'x'.repeat(100),
    });
    expectRefused(searchParams, 'q=%C2%85a', LENGTH);
  });

  it('measures the length in code points', () => {
    for (const text of ['ab', '🚀🚀', 'e\u0301', 'x'.repeat(100), '🚀'.repeat(100)])
      expectQueries({ [encodeURIComponent(text)]: text });
    for (const text of ['', 'a', '🚀', 'x'.repeat(101), '🚀'.repeat(101)])
      expectRefused(searchParams, `q=${encodeURIComponent(text)}`, LENGTH);
  });

  it('requires exactly one q', () => {
    for (const querystring of ['', 'Q=lib&limit=1'])
      expectRefused(searchParams, querystring, 'q is required');
    for (const querystring of ['q=lib&q=lib', 'q=lib&%71=lib'])
      expectRefused(searchParams, querystring, 'q must be given once');
  });
});

describe('parseParams for bytes that are not UTF-8', () => {
  const NOT_UTF8 = 'must be UTF-8, percent-encoded';

  it('rejects malformed input in a known parameter by its name', () => {
    for (const text of ['%FF%FEab', 'ab%C3', '%ED%A0%80ab', '%C0%AFab', '%EF%BF%BD%FF', '%f0%9f%9aab']) {
      expectRefused(searchParams, `q=${text}`, `q ${NOT_UTF8}`);
      expectRefused(searchParams, `utm=%20&%71=${text}&limit=1`, `q ${NOT_UTF8}`);
      expectRefused(secretParams, `secret=${text}`, `secret ${NOT_UTF8}`);
    }
  });

  it('rejects malformed input in any value of a list', () => {
    const names = z.object({ name: z.array(z.string()) });
    expectRefused(names, 'name=%EF%BF%BD&name=%FF', `name 2 of 2 ${NOT_UTF8}`);
    expectParsed(names, { 'name=a&name=%EF%BF%BD&name=a': { name: ['a', '\uFFFD', 'a'] }, '': { name: [] } });
  });

  it('ignores malformed input in an unknown parameter', () => {
    const q = '%EF%BF%BDab';
    for (const other of ['utm=100%', 'utm=%FF%FE', '%FF=1', '%', '%zz=%zz', 'utm=%EF%BF', '?q=%FF', '=%C3'])
      for (const querystring of [`q=${q}&${other}`, `${other.replace(/^\?/, 'x')}&q=${q}`])
        expectParsed(searchParams, { [querystring]: { ...DEFAULTS, q: '\uFFFDab' } });
  });

  it('accepts U+FFFD like any other character, even next to a % that encodes nothing', () => {
    expectQueries({
      '%ef%bf%bd%EF%BF%BD': '\uFFFD\uFFFD',
      '%EF%BF%BD%zz': '\uFFFD%zz',
      '%EF%BF%BD+%25FF': '\uFFFD %FF',
    });
  });
});

describe('memoized', () => {
  const parse = memoized((querystring) => parseParams(searchParams, querystring));

  it('returns the same frozen parameters again, except those of long query strings', () => {
    const padded = (length: number) => 'q=lib&x='.padEnd(length, 'x');
    expect(parse(padded(256))).to.equal(parse(padded(256))).and.to.be.frozen;
    expect(parse(padded(257))).to.deep.equal(parse(padded(256))).and.to.be.frozen;
    expect(parse(padded(257))).not.to.equal(parse(padded(257)));
  });

  it('forgets the query strings that have not been used for the longest time', () => {
    const first = parse('q=first');
    for (let i = 0; i < 5000; i++) parse(`q=lib&x=${i}`);
    expect(parse('q=first')).not.to.equal(first);
  });
});

describe('parseParams for the secret endpoints', () => {
  it('returns the secret unchanged', () => {
    expectParsed(secretParams, { 'secret=+a%2Bb+': { secret: ' a+b ' }, 'secret=': { secret: '' }, '': {} });
    expectRefused(secretParams, 'secret=a&secret=b', 'secret must be given once');
  });

  it('accepts force=true and force=false for a rebuild', () => {
    expectParsed(rebuildParams, { 'force=true': { force: 'true' }, '': { force: 'false' } });
    for (const text of ['', '1', 'TRUE', 'true%20'])
      expectRefused(rebuildParams, `secret=a&force=${text}`, 'force must be true or false');
  });
});

describe('The pattern of q in the OpenAPI document', () => {
  it('matches exactly the values that the service accepts', () => {
    const { $defs } = z.toJSONSchema(queryText, { io: 'input' });
    const { pattern: source } = $defs?.['Query'] as { pattern: string };
    const pattern = new RegExp(source, 'u');
    const spaces = [' ', '\t', '\n', '\u0085', '\u3000', '\u2009', '\ufeff', '\u200b', '\u001c'];
    const piece = fc.constantFrom(...spaces, 'a', 'é', '🚀', 'x'.repeat(48), '🚀'.repeat(49), '');
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        const text = pieces.join('');
        const takes = searchParams.safeParse({ q: text }).success;
        expect(pattern.test(text), JSON.stringify(text)).to.equal(takes);
      }),
      { numRuns: 2000 },
    );
  });
});
