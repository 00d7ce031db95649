import { rejects } from 'node:assert/strict';
import { expect } from 'chai';
import { readRows } from '../../../../src/rebuild/dataset/rows.js';
import { itemsOf, streamOf } from '../../../support/batches.js';

/** The weight of a row with this field, or the reason why it is bad. */
async function weightOf(field: string, header = 'name,url,weight'): Promise<number | string | undefined> {
  const csv = `${header}\na,https://registry.example/a,${field}\n`;
  const [row] = await itemsOf(readRows(streamOf([Buffer.from(csv)]), undefined));
  if (row === undefined) throw new Error('there is no row');
  return 'entry' in row ? row.entry.weight : row.reason;
}

describe('The column weight', () => {
  it('is a whole number, 0 if it is empty', async () => {
    for (const [field, weight] of [
      ['0', 0],
      ['', 0],
      ['1', 1],
      ['9007199254740991', 2 ** 53 - 1],
    ] as const)
      // prettier-ignore
      expect(await weightOf(field)).to.equal(weight);
  });

  it('makes a row invalid if it is anything else', async () => {
    for (const field of ['-1', '1.5', '01', '00', '1e3', ' 1', 'many', '9007199254740992', '١'])
      expect(await weightOf(field), field).to.equal(
        `weight "${field}" is not a number from 0 to 9007199254740991 in digits without leading zeros`,
      );
  });

  it('is optional, and an error if it is misspelled or repeated', async () => {
    expect(await weightOf('7', 'name,url,downloads')).to.equal(undefined);
    await rejects(weightOf('7', 'name,url,Weight'), /line 1: rename the column "Weight" to `weight`/);
    await rejects(weightOf('7,8', 'name,url,weight,weight'), /there are two columns `weight`/);
  });
});
