import { expect } from 'chai';
import {
  decodeRecord,
  encodeRecord,
  kindOf,
  nameOf,
  netChange,
  type ChangeRecord,
} from '../../../src/search/change-record.js';

const entry = (version: string, no = 1) => ({ no, name: 'a', version, url: 'https://r.example/a' });
const record = (before?: string, after?: string): ChangeRecord => ({
  snapshot: 's',
  ...(before === undefined ? {} : { before: entry(before) }),
  ...(after === undefined ? {} : { after: entry(after) }),
});

describe('A record of a change', () => {
  it('survives encoding and decoding', () => {
    for (const one of [record('1', '2'), record('1'), record(undefined, '🚀')]) {
      expect(decodeRecord(encodeRecord(one))).to.deep.equal(one);
    }
  });

  it('takes its name and kind from its entries', () => {
    const kinds = [record(undefined, '1'), record('1'), record('1', '2')].map((one) => [
      nameOf(one),
      kindOf(one),
    ]);
    expect(kinds).to.deep.equal([
      ['a', 'added'],
      ['a', 'removed'],
      ['a', 'updated'],
    ]);
  });
});

describe('The net change', () => {
  const net = (...records: ChangeRecord[]) => netChange(records, true);

  it('spans from before the first record to after the last', () => {
    expect(net(record(undefined, '1'), record('1', '2'))).to.deep.equal({
      change: 'added',
      entry: entry('2'),
    });
    expect(net(record('1', '2'), record('2', '3'))).to.deep.equal({ change: 'updated', entry: entry('3') });
    expect(net(record('1'), record(undefined, '2'))).to.deep.equal({ change: 'updated', entry: entry('2') });
  });

  it('contains the last entry of a removed package', () => {
    expect(net(record('1', '2'), record('2'))).to.deep.equal({ change: 'removed', entry: entry('2') });
  });

  it('is undefined if nothing changed', () => {
    expect(net(record('1', '2'), record('2', '1'))).to.equal(undefined);
    expect(net(record('1'), record(undefined, '1'))).to.equal(undefined);
    expect(net(record(undefined, '1'), record('1'))).to.equal(undefined);
  });

  it('includes a changed number only if the dataset has numbers', () => {
    const renumbered: ChangeRecord = { snapshot: 's', before: entry('1', 1), after: entry('1', 2) };
    expect(netChange([renumbered], true)).to.deep.equal({ change: 'updated', entry: entry('1', 2) });
    expect(netChange([renumbered], false)).to.equal(undefined);
  });
});
