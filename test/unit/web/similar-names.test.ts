import { expect } from 'chai';
import { mostUsed } from '../../../src/web/similar-names.js';

const entry = (name: string, weight?: number) => ({
  no: 1,
  name,
  version: '1',
  url: 'https://registry.example/',
  ...(weight !== undefined && { weight }),
});

/** The names of those used most, with `!` if they are marked. */
function shown(original: number | undefined, ...weights: (number | undefined)[]): string[] {
  const similar = weights.map((weight, i) => entry(`${i}`, weight));
  return mostUsed(entry('original', original), similar).map(
    ({ name, isMuchMoreUsed }) => name + (isMuchMoreUsed ? '!' : ''),
  );
}

describe('The look-alikes of a package', () => {
  it('are the five most used names', () => {
    expect(shown(10, 3, 7, 7, 900, 1, 0, 5)).to.deep.equal(['3', '1', '2', '6', '0']);
    expect(shown(10)).to.deep.equal([]);
  });

  it('are marked from a hundred times the uses', () => {
    expect(shown(45, 4500, 4499)).to.deep.equal(['0!', '1']);
    expect(shown(1, 100, 99)).to.deep.equal(['0!', '1']);
  });

  it('are marked from a hundred uses if the package has none', () => {
    expect(shown(0, 100, 99, 0)).to.deep.equal(['0!', '1', '2']);
  });

  it('keep their order without weights, unmarked', () => {
    expect(shown(undefined, undefined, undefined)).to.deep.equal(['0', '1']);
  });
});
