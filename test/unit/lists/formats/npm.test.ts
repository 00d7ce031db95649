import { expect } from 'chai';
import { convert, inTurn, useListServer, type Answer } from '../../../support/list-server.js';

const page = (...ids: string[]) => pageOf(undefined, ...ids);
const pageOf = (total: number | undefined, ...ids: string[]) =>
  JSON.stringify({
    total_rows: total,
    offset: 0,
    rows: ids.map((id) => ({ id, key: id, value: { rev: '1-a' } })),
  });
const named = (...names: string[]) => names.map((name) => ({ name }));

describe('The format npm', () => {
  const serve = useListServer();
  const convertFrom = async (...answers: Answer[]) => {
    const server = await serve(inTurn(...answers.map((answer) => () => answer)));
    const outcome = await convert('npm', `${server.origin}/registry/_all_docs?conflicts=false`);
    const searches = server.requests.map(({ url }) => new URL(url, 'http://any').searchParams);
    return { outcome, starts: searches.map((search) => search.get('startkey')), searches };
  };

  it('asks for pages by the last name, in JSON', async () => {
    const { outcome, starts, searches } = await convertFrom(
      page('"a', 'b&c'),
      page('b&c', 'd é'),
      page('d é'),
    );
    expect(outcome).to.deep.equal(named('"a', 'b&c', 'd é'));
    expect(starts).to.deep.equal([null, '"b&c"', '"d é"']);
    for (const search of searches) expect(search.toString()).to.match(/^conflicts=false&limit=10000/);
  });

  it('misses no name if the last one was deleted meanwhile', async () => {
    const { outcome } = await convertFrom(page('a', 'b'), page('c'), page());
    expect(outcome).to.deep.equal(named('a', 'b', 'c'));
    expect((await convertFrom(pageOf(1, 'a'), pageOf(1, 'a'))).outcome).to.deep.equal(named('a'));
    expect((await convertFrom(page('a'), page())).outcome).to.deep.equal(named('a'));
  });

  it('leaves out design documents, also at the end of a page', async () => {
    const { outcome, starts } = await convertFrom(
      page('_design/a'),
      page('_design/a', 'b', '_z'),
      page('_z'),
    );
    expect(outcome).to.deep.equal(named('b'));
    expect(starts).to.deep.equal([null, '"_design/a"', '"_z"']);
  });

  it('reads pages whose names are in any order', async () => {
    const { outcome } = await convertFrom(page('b', 'B', 'a'), page('a', 'C', 'c'), page('c'));
    expect(outcome).to.deep.equal(named('b', 'B', 'a', 'C', 'c'));
  });
});
