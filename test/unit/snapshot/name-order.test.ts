import { expect } from 'chai';
import { entriesInNameOrder } from '../../../src/snapshot/name-order.js';

describe('entriesInNameOrder', () => {
  const common = {
    _source: false,
    stored_fields: '_none_',
    docvalue_fields: ['entry'],
    size: 500,
    track_total_hits: false,
    timeout: '25s',
  };
  /** Names in a range that are equal to `name` in lower case. */
  const equal = (name: string, range: object) => ({
    bool: { filter: [{ range: { 'name.lowercase': { gte: name, lte: name } } }, { range: { name: range } }] },
  });

  it('reads all entries in the order of the index, which is name order in one segment', () => {
    const all = { query: { bool: { filter: [] } } };
    expect(entriesInNameOrder(500, undefined, undefined)).to.deep.equal({
      ...common,
      ...all,
      sort: ['_doc'],
    });
  });

  it('reads the entries after one name, up to another name', () => {
    const { query } = entriesInNameOrder(500, 'Ab', 'Cd');
    expect(query).to.deep.equal({
      bool: {
        filter: [
          { range: { 'name.lowercase': { gte: 'Ab' } } },
          { range: { 'name.lowercase': { lte: 'Cd' } } },
        ],
        must_not: [equal('Ab', { lte: 'Ab' }), equal('Cd', { gt: 'Cd' })],
      },
    });
  });
});
