import { expect } from 'chai';
import { NumberList } from '../../../src/rebuild/number-list.js';
import { longestBlock } from '../../support/event-loop.js';
import { integer, seededRandom } from '../../../fixtures/random.js';

const MAX_BLOCK_MS = 20;

function unsorted(numbers: Iterable<number>): NumberList {
  const list = new NumberList();
  for (const value of numbers) list.push(value);
  return list;
}

async function listOf(numbers: Iterable<number>): Promise<NumberList> {
  const list = unsorted(numbers);
  await list.sort();
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

  for (const length of [0, 1, 2, 1000, 32_767, 32_768, 32_769, 65_536, 98_305, 163_841]) {
    it(`sorts ${length} numbers in any order`, async () => {
      const shuffled = Array.from({ length }, () => integer(random, 1, Number.MAX_SAFE_INTEGER));
      const sorted = shuffled.toSorted((a, b) => a - b);
      for (const order of [shuffled, sorted, sorted.toReversed()]) expectList(await listOf(order), sorted);
    });
  }

  it('returns no index for a number that it does not contain', async () => {
    const list = await listOf([10, 5, 7]);
    for (const value of [1, 6, 11]) expect(list.indexOf(value)).to.equal(-1);
  });

  it('finds each repeated number once, up to a limit', async () => {
    const repeated = [1, 32_768, 32_769, 99_999];
    const list = await listOf([...repeated, ...numbers, ...repeated, ...repeated]);
    expect(await list.repeated(100)).to.deep.equal(repeated);
    expect(await list.repeated(2)).to.deep.equal(repeated.slice(0, 2));
    expect(await (await listOf(numbers)).repeated(100)).to.deep.equal([]);
  });

  it('removes each of the given numbers once', async () => {
    const list = await listOf([...numbers, 5, 5, 70_000]);
    await list.remove([5, 70_000, 5]);
    expectList(list, numbers);
    await list.remove([]);
    const removed = [1, 32_768, 100_000];
    await list.remove(removed);
    const kept = numbers.filter((value) => !removed.includes(value));
    expectList(list, kept);
    for (const value of removed) expect(list.indexOf(value)).to.equal(-1);
  });

  it(`blocks the event loop for ${MAX_BLOCK_MS} ms at most with 500,000 numbers out of order`, async () => {
    const shuffled = Float64Array.from({ length: 500_000 }, () => integer(random, 1, 1e9));
    // One per run; the first run that other processes do not interrupt is enough.
    const lists = Array.from({ length: 8 }, () => unsorted(shuffled));
    const use = async () => {
      const list = lists.pop() as NumberList;
      await list.sort();
      await list.remove(await list.repeated(10));
    };
    expect(await longestBlock(use, lists.length, MAX_BLOCK_MS)).to.be.at.most(MAX_BLOCK_MS);
  });
});
