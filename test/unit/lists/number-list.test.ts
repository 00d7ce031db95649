import { expect } from 'chai';
import { NumberList } from '../../../src/lists/number-list.js';
import { integer, seededRandom } from '../../fixtures/random.js';

function listOf(numbers: Iterable<number>): NumberList {
  const list = new NumberList();
  for (const value of numbers) list.push(value);
  list.sort();
  return list;
}

/** Asserts that the list has exactly these numbers, each at its index. */
function expectList(list: NumberList, sorted: readonly number[]): void {
  expect(list.length).to.equal(sorted.length);
  expect(sorted.filter((value) => sorted[list.indexOf(value)] !== value)).to.deep.equal([]);
}

describe('NumberList', function () {
  this.timeout(60_000);
  const random = seededRandom(8);
  const numbers = Array.from({ length: 100_000 }, (_, i) => i + 1);

  for (const length of [0, 1, 2, 1000, 131_071, 131_072, 131_073, 163_841]) {
    it(`sorts ${length} numbers in any order`, () => {
      const shuffled = Array.from({ length }, () => integer(random, 1, Number.MAX_SAFE_INTEGER));
      const sorted = shuffled.toSorted((a, b) => a - b);
      for (const order of [shuffled, sorted, sorted.toReversed()]) expectList(listOf(order), sorted);
    });
  }

  it('returns no index for a number that it does not contain', () => {
    const list = listOf([10, 5, 7]);
    for (const value of [1, 6, 11]) expect(list.indexOf(value)).to.equal(-1);
  });

  it('finds each repeated number once, up to a limit', () => {
    const repeated = [1, 32_768, 32_769, 99_999];
    const list = listOf([...repeated, ...numbers, ...repeated, ...repeated]);
    expect([...list.repeated(100)]).to.deep.equal(repeated);
    expect([...list.repeated(2)]).to.deep.equal(repeated.slice(0, 2));
    expect([...listOf(numbers).repeated(100)]).to.deep.equal([]);
    expect([...listOf([0]).repeated(100)]).to.deep.equal([]);
    expect([...listOf([0, 0]).repeated(100)]).to.deep.equal([0]);
  });

  it('removes each of the given numbers once', () => {
    const list = listOf([...numbers, 5, 5, 70_000]);
    list.remove([5, 70_000, 5]);
    expectList(list, numbers);
    list.remove([]);
    const removed = [1, 32_768, 100_000];
    list.remove(removed);
    const kept = numbers.filter((value) => !removed.includes(value));
    expectList(list, kept);
    for (const value of removed) expect(list.indexOf(value)).to.equal(-1);
  });

  it('can be filled again once it was cleared', () => {
    const list = listOf(numbers);
    list.clear();
    expectList(list, []);
    expect(list.indexOf(1)).to.equal(-1);
    list.push(7);
    expectList(list, [7]);
  });
});
