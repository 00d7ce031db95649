import { expect } from 'chai';
import { encodingFor } from '../../../../src/http/response/compression.js';

describe('encodingFor', () => {
  it('is the better encoding of those with the highest weight', () => {
    for (const [accepted, expected] of [
      ['gzip', 'gzip'],
      ['BR', 'br'],
      ['gzip, deflate, br, zstd', 'br'],
      ['br;q=0.1, gzip', 'gzip'],
      ['br; q=0.9,gzip ;q=1.0', 'gzip'],
      ['gzip;q=0.1', 'gzip'],
      ['br;q=0, gzip', 'gzip'],
      ['*', 'br'],
      ['*;q=0.1, gzip;q=0.2', 'gzip'],
      ['*, br;q=0', 'gzip'],
      ['identity, gzip;q=0.5', undefined],
      ['identity;q=0.5, gzip', 'gzip'],
      ['*;q=0', undefined],
      ['br;q=high', undefined],
      ['deflate', undefined],
      ['', undefined],
      [undefined, undefined],
    ] as const) {
      expect(encodingFor(accepted), accepted).to.equal(expected);
    }
  });
});
