import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { convert, useListServer, type Body } from '../../../support/list-server.js';

/** `Package: b`, `Version: 1.0-10`, `Description: x`, ` Package: y` and an empty line, by xz 5.4 at level 9. */
const XZ = Buffer.from(
  '/Td6WFoAAAFpIt42AgAhARwAAAAQz1jM4AA2ADJdACgYSGbb2jCF/hbfnAHb6cJQiWNKfcrsR1LRk0GpAmkcRajPSF9na/+JL3QCibiVhAAAAAAAbdg+nAABSjert62SkEKZDQEAAAAAAVla',
  'base64',
);

/** No text. */
const EMPTY_XZ = Buffer.from('/Td6WFoAAATm1rRGAAAAABzfRCEftvN9AQAAAAAEWVo=', 'base64');

describe('The format debian', () => {
  const serve = useListServer();
  async function convertFrom(...files: Body[]) {
    const { origin } = await serve((url) => files[Number(url.pathname.slice(1))]);
    return convert(
      'debian',
      files.map((_file, i) => `${origin}/${i}`),
    );
  }

  it('takes the highest version over all files, plain, gzip or xz', async () => {
    const rows = await convertFrom(
      'Package: b\nVersion: 1.0-1\n\nPackage: a\nVersion: 1:1\n\nPackage: b\nVersion: 1.0~rc1-9\n',
      gzipSync('PACKAGE: a\nversion: 2:0~\n\n\n\nPackage: c\nVersion: 1\n'),
      XZ,
    );
    expect(rows).to.deep.equal([
      { name: 'b', version: '1.0-10', description: 'x' },
      { name: 'a', version: '2:0~', description: '' },
      { name: 'c', version: '1', description: '' },
    ]);
  });

  it('allows the index of a component without packages beside others', async () => {
    const filled = 'Package: a\nVersion: 1\n';
    for (const empty of ['', '\n', gzipSync(''), EMPTY_XZ]) {
      expect(await convertFrom(empty, filled), 'first').to.deep.equal([{ name: 'a', version: '1' }]);
      expect(await convertFrom(filled, empty), 'last').to.deep.equal([{ name: 'a', version: '1' }]);
    }
  });

  it('ends a stanza only at an empty line', async () => {
    for (const blank of [' ', '\t', '  \r']) {
      const stanzas = `${blank}\nPackage: a\nDescription: x\n y\n${blank}\nVersion: 1\r\n\r\n${blank}\nPackage: b\nVersion: 2\n\n${blank}\n`;
      expect(await convertFrom(stanzas)).to.deep.equal([
        { name: 'a', version: '1', description: 'x' },
        { name: 'b', version: '2', description: '' },
      ]);
    }
  });
});
