import { expect } from 'chai';
import { encodingFor } from '../../../../src/http/response/compression.js';

describe('encodingFor', () => {
  it('is the best one that the client accepts', () => {
    for (const [accepted, expected] of [
      ['gzip', 'gzip'],
      ['BR', 'br'],
      ['gzip, deflate, br, zstd', 'br'],
      ['br;q=0.1, gzip', 'br'],
      ['gzip;q=0.1', 'gzip'],
      ['br;q=0, gzip', 'gzip'],
      ['br; q=0.000 ,gzip ;q=1.0', 'gzip'],
      ['br;q=0.01', 'br'],
      ['identity, *;q=0', undefined],
      ['deflate', undefined],
      ['', undefined],
      [undefined, undefined],
    ] as const) {
      expect(encodingFor(accepted), accepted).to.equal(expected);
    }
  });
});
