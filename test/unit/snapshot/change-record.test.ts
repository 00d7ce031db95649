import { expect } from 'chai';
import {
  decodeRecord,
  encodeRecord,
  kindOf,
  nameOf,
  netChange,
  type ChangeRecord,
} from '../../../src/snapshot/change-record.js';

const entry = (version: string, no = 1) => ({ no, name: 'a', version, url: 'https://r.example/a' });
const record = (before?: string, after?: string): ChangeRecord => ({
  snapshot: 's',
  ...(before === undefined ? {} : { before: entry(before) }),
  ...(after === undefined ? {} : { after: entry(after) }),
});

describe('A record of a change', () => {
  it('survives encoding and decoding', () => {
    for (const one of [record('1', '2'), record('1'), record(undefined, '🚀')])
      expect(decodeRecord(encodeRecord(one))).to.deep.equal(one);
  });

  it('takes its name and kind from its entries', () => {
    const records = [record(undefined, '1'), record('1'), record('1', '2')];
    expect(records.map(kindOf)).to.deep.equal(['added', 'removed', 'updated']);
    expect(records.map(nameOf)).to.deep.equal(['a', 'a', 'a']);
  });
});

describe('The net change', () => {
  const nets: [what: string, records: ChangeRecord[], net: object | undefined][] = [
    ['added', [record(undefined, '1'), record('1', '2')], { change: 'added', entry: entry('2') }],
    [
      'updated',
      [record('1', '2'), record('2', '3')],
      { change: 'updated', entry: entry('3'), previousVersion: '1' },
    ],
    [
      'replaced',
      [record('1'), record(undefined, '2')],
      { change: 'updated', entry: entry('2'), previousVersion: '1' },
    ],
    ['removed', [record('1', '2'), record('2')], { change: 'removed', entry: entry('2') }],
    ['as before', [record('1', '2'), record('2', '1')], undefined],
    ['removed and added again', [record('1'), record(undefined, '1')], undefined],
    ['added and removed again', [record(undefined, '1'), record('1')], undefined],
  ];
  for (const [what, records, net] of nets) {
    it(`compares the entry before the first record with the entry after the last: ${what}`, () => {
      expect(netChange(records, true)).to.deep.equal(net);
    });
  }

  it('includes a changed number only if the dataset has numbers', () => {
    const renumbered: ChangeRecord = { snapshot: 's', before: entry('1', 1), after: entry('1', 2) };
    const net = { change: 'updated', entry: entry('1', 2), previousVersion: '1' };
    expect(netChange([renumbered], true)).to.deep.equal(net);
    expect(netChange([renumbered], false)).to.equal(undefined);
  });
});
