import { expect } from 'chai';
import { shortNameOf } from '../../../src/routes/opensearch.js';

describe('The short name of a search engine', () => {
  it('is the slug of at most 16 characters', () => {
    expect(shortNameOf('python-packages1')).to.equal('python-packages1');
  });

  it('differs for each longer slug', () => {
    const slugs = [
      'python-packages1',
      'python-packages-1',
      'python-packages-2',
      'python-packages',
      'python-pa',
    ];
    const names = slugs.map(shortNameOf);
    expect(new Set(names).size).to.equal(slugs.length);
    for (const name of names) expect(name).to.match(/^[\w~-]{1,16}$/);
  });
});
