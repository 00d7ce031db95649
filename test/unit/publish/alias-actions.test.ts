import { expect } from 'chai';
import { flipActions, preventFlip, swapActions, whileServed } from '../../../src/publish/alias-actions.js';

const ALIAS = 'registry-packages';
const [OLDEST, OLD, NEW] = ['20260101', '20260102', '20260103'].map(
  (day) => `${ALIAS}-${day}t000000z-00000000`,
) as [string, string, string];
const CHANGES = `${ALIAS}-changes-20260103t000000z-00000000`;
/** An index of an operator. */
const FOREIGN = 'restored';
const PREVIOUS = `${ALIAS}-previous`;

const remove = (index: string, alias: string) => ({ remove: { index, alias, must_exist: true } });
const removeAny = (index: string) => ({ remove: { index, alias: PREVIOUS, must_exist: false } });
const serve = (index: string) => ({ add: { index, alias: ALIAS, is_write_index: true } });
const keep = (index: string) => ({ add: { index, alias: PREVIOUS } });

describe('flipActions', () => {
  it('serve the first index, if it is still being loaded and nothing else is', () => {
    const finished = remove(NEW, `${NEW}-loading`);
    expect(flipActions(ALIAS, { from: undefined, to: NEW })).to.deep.equal([finished, serve(NEW)]);
  });

  it('move both aliases, if the index and its changes are complete and the old one is still served', () => {
    const actions = flipActions(ALIAS, { from: OLD, previous: OLDEST, to: NEW, changes: CHANGES });
    expect(actions).to.deep.equal([
      remove(NEW, `${NEW}-loading`),
      remove(CHANGES, `${CHANGES}-loading`),
      remove(OLD, ALIAS),
      removeAny(`${ALIAS}-*`),
      keep(OLD),
      serve(NEW),
    ]);
  });

  it('keep the replaced snapshot if there is none before it', () => {
    const actions = flipActions(ALIAS, { from: OLD, to: NEW });
    expect(actions.slice(-3)).to.deep.equal([removeAny(`${ALIAS}-*`), keep(OLD), serve(NEW)]);
  });

  it('leave the previous snapshot as it is if an operator has moved the alias to another index', () => {
    const actions = flipActions(ALIAS, { from: FOREIGN, previous: OLDEST, to: NEW });
    expect(actions).to.deep.equal([remove(NEW, `${NEW}-loading`), remove(FOREIGN, ALIAS), serve(NEW)]);
  });
});

describe('swapActions', () => {
  it('exchange the current and the previous snapshot, if both are still that', () => {
    expect(swapActions(ALIAS, NEW, OLD)).to.deep.equal([
      remove(NEW, ALIAS),
      remove(OLD, PREVIOUS),
      keep(NEW),
      serve(OLD),
    ]);
  });
});

describe('The preconditions of other requests', () => {
  it('change nothing, but fail unless an index is served', () => {
    expect(whileServed(ALIAS, OLD)).to.deep.equal([remove(OLD, ALIAS), serve(OLD)]);
  });

  it('fail if an index has been served', () => {
    expect(preventFlip(NEW)).to.deep.equal([remove(NEW, `${NEW}-loading`)]);
  });
});
