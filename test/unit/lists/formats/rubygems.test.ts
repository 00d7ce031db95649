import { expect } from 'chai';
import { compareGemVersions } from '../../../../src/lists/formats/versions.js';
import { convert, useListServer } from '../../../support/list-server.js';

describe('The format rubygems', () => {
  const serve = useListServer();
  const convertFrom = async (lines: string) => convert('rubygems', (await serve(() => lines)).url);

  it('orders versions as RubyGems does', () => {
    // Each is lower than the next one: Gem::Version.new(a) < Gem::Version.new(b).
    const ascending = ['0.a', '0.0.1', '1.a', '1.0.a.2', '1.0.a10', '1.0.b', '1.0.b.1', '1.0.pre', '1.0.rc1', '1', '1.0.1.a', '1.0.1', '1.2', '1.10', '2.0.0.20240101', '10.0', '99999999999999999999.1']; // prettier-ignore
    for (const [i, lower] of ascending.entries())
      for (const [j, higher] of ascending.entries())
        expect(Math.sign(compareGemVersions(lower, higher)), `${lower} ${higher}`).to.equal(Math.sign(i - j));
    for (const [a, b] of [
      ['1', '1.0.0'],
      ['1.0.a', '1.a'],
      ['1.a.0', '1.a'],
      ['01.2', '1.2'],
    ] as const)
      expect(compareGemVersions(a, b), `${a} ${b}`).to.equal(0);
  });

  it('takes the highest release, else the highest prerelease, without its platform', async () => {
    const rows = await convertFrom(
      'a 1.9,1.10-java,2.0.rc1 c\nb 1.0.a,1.0.b-x86-mingw32 c\nc 1.0-java,1-x c\n',
    );
    expect(rows).to.deep.equal([
      { name: 'a', version: '1.10' },
      { name: 'b', version: '1.0.b' },
      { name: 'c', version: '1.0' },
    ]);
  });

  it('withdraws exactly the versions of a platform', async () => {
    const lines = ['created_at: 2024-04-01T00:00:05Z', 'x y z', '---', 'b 1,2,2-java c', 'a 1,1-java c', 'b -2 c', 'a -1,-1-java', 'b -2-java,1.5', 'd -7', 'e 1', 'e -1', 'e 1']; // prettier-ignore
    expect(await convertFrom(`${lines.join('\n')}\n`)).to.deep.equal([
      { name: 'b', version: '1.5' },
      { name: 'e', version: '1' },
    ]);
  });

  it('allows lines without versions or checksums, a list without ---, CRLF', async () => {
    const rows = await convertFrom('z  0123\n\r\na 1.0\r\ny\nz 2 c\n');
    expect(rows).to.deep.equal([
      { name: 'z', version: '2' },
      { name: 'a', version: '1.0' },
    ]);
  });

  it('ignores lines of metadata that are not followed by ---', async () => {
    for (const metadata of ['created_at: 2024-04-01T00:00:05Z', 'format: 1', 'created_at:\r\nsize:2']) {
      expect(await convertFrom(`${metadata}\na 1 c\n`), metadata).to.deep.equal([
        { name: 'a', version: '1' },
      ]);
    }
  });
});
