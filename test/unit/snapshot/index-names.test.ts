import { expect } from 'chai';
import {
  aliasOf,
  allIndicesOf,
  changesIndexOf,
  isSnapshotOf,
  isChangesOf,
  loadingAliasesOf,
  loadingAliasOf,
  newIndexName,
  previousAliasOf,
  SNAPSHOT_ID,
  snapshotIdOf,
} from '../../../src/snapshot/index-names.js';

describe('newIndexName', () => {
  const at = (time: string) => newIndexName('debian-packages', new Date(time));

  it('is the alias, the time in UTC and a random part', () => {
    expect(at('2025-01-02T03:04:05.678Z')).to.match(/^debian-packages-20250102t030405z-[0-9a-f]{8}$/);
    expect(at('2025-01-02T01:00:00+02:00')).to.match(/^debian-packages-20250101t230000z-/);
  });
});

describe('isSnapshotOf', () => {
  it('rejects names that are not snapshots of exactly this alias', () => {
    const others = [
      'debian-packages',
      'debian-packages-20250102t030405z',
      'debian-packages-20250102t030405z-0123456g',
      'debian-packages-20250102t030405z-012345678',
      'debian-packages-20250102t030405z-01234567\n',
      'debian-packages-test-20250102t030405z-01234567',
      'my-debian-packages-20250102t030405z-01234567',
      'debianxpackages-20250102t030405z-01234567',
    ];
    for (const index of others) expect(isSnapshotOf('debian-packages', index), index).to.be.false;
  });
});

describe('The names of registries with similar slugs', () => {
  const BUILD = 'npm-packages-v2-20250102t030405z-01234567';
  const slugs = [
    'npm',
    'npm-',
    'npm-packages',
    'npm-packages-v2',
    'npm-packages-v2-previous',
    'npm-packages-v2-changes',
    BUILD,
  ];
  const aliases = slugs.map(aliasOf);
  const snapshots = new Map(aliases.map((alias) => [alias, newIndexName(alias, new Date())]));

  it('are distinct, for aliases and indices', () => {
    const indices = [...snapshots.values()];
    const names = [...aliases, ...aliases.map(previousAliasOf), ...indices, ...indices.map(loadingAliasOf)];
    expect(new Set(names)).to.have.property('size', 4 * aliases.length);
  });

  it('identify the registry of a snapshot and of its changes', () => {
    for (const [alias, index] of snapshots) {
      const changes = changesIndexOf(alias, snapshotIdOf(index));
      expect(aliases.filter((other) => isSnapshotOf(other, index))).to.deep.equal([alias]);
      expect(aliases.filter((other) => isSnapshotOf(other, changes))).to.deep.equal([]);
      expect(aliases.filter((other) => isChangesOf(other, changes))).to.deep.equal([alias]);
      expect(aliases.filter((other) => isChangesOf(other, index))).to.deep.equal([]);
    }
  });

  it('grant rights to no other registry', () => {
    const covers = (pattern: string, name: string) => new RegExp(`^${pattern.slice(1, -1)}$`).test(name);
    for (const [alias, index] of snapshots) {
      const loading = loadingAliasOf(index);
      for (const name of [index, changesIndexOf(alias, snapshotIdOf(index))])
        expect(aliases.filter((other) => covers(allIndicesOf(other), name))).to.deep.equal([alias]);
      expect(aliases.filter((other) => covers(loadingAliasesOf(other), loading))).to.deep.equal([alias]);
      const all = [...snapshots.keys(), ...aliases.map(previousAliasOf), loading];
      expect(all.filter((name) => covers(allIndicesOf(alias), name))).to.deep.equal([]);
    }
  });
});

describe('snapshotIdOf', () => {
  it('is the unique part of the name of an index, well-formed for any other index', () => {
    const index = newIndexName('debian-packages', new Date('2025-01-02T03:04:05Z'));
    expect(`debian-packages-${snapshotIdOf(index)}`).to.equal(index);
    const others = ['restored', 'debian-packages-20250102t030405z', 'x', `${index}-copy`].map(snapshotIdOf);
    for (const id of others) expect(id).to.match(SNAPSHOT_ID);
    expect(new Set([...others, snapshotIdOf(index)]).size).to.equal(5);
  });
});
