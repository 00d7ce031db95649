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

/** A stanza by `xz --lzma2=dict=…MiB`, and by `--delta` and `--check=sha256`. */
const XZ_65 = Buffer.from(
  '/Td6WFoAAATm1rRGAgAhAR0AAAB1qOR0AQAVUGFja2FnZTogYQpWZXJzaW9uOiAxCgAAAHiqwInbgPEcAAEuFlYJVd8ftvN9AQAAAAAEWVo=',
  'base64',
);
const XZ_128 = Buffer.from(
  '/Td6WFoAAATm1rRGAgAhAR4AAACbB1FmAQAVUGFja2FnZTogYQpWZXJzaW9uOiAxCgAAAHiqwInbgPEcAAEuFlYJVd8ftvN9AQAAAAAEWVo=',
  'base64',
);
const XZ_DELTA = Buffer.from(
  '/Td6WFoAAATm1rRGAgEDAQAhARBMhacHAQAVUBECCPYG/tXmQalMDw0B9gb/zOYR2QAAAHiqwInbgPEcAAEuFlYJVd8ftvN9AQAAAAAEWVo=',
  'base64',
);
const XZ_SHA256 = Buffer.from(
  '/Td6WFoAAArh+wyhAgAhARAAAACocI6GAQAVUGFja2FnZTogYQpWZXJzaW9uOiAxCgAAAC7TJxgz89/Kmo68FfqaYxo65nJ7R5rRrLh/V/Tn6vX7AAFGFvnocXIYm0uaAQAAAAAKWVo=',
  'base64',
);
const TOO_LARGE = 'the xz needs more than 64 MiB for its dictionary: compress it with `xz -9`, or with gzip';
const UNSUPPORTED =
  'the xz has a filter or a check that is not supported: compress it with `xz -9`, or with gzip';

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
      { name: 'b', version: '1.0-10' },
      { name: 'a', version: '2:0~' },
      { name: 'c', version: '1' },
    ]);
  });

  it("reads CRAN's PACKAGES", async () => {
    const cran =
      'Package: A3\nVersion: 1.0.0\nDepends: R (>= 2.15.0), xtable,\n        pbapply\nLicense: GPL (>= 2)\n\nPackage: abc\r\nVersion: 2.2.2\r\n';
    expect(await convertFrom(cran)).to.deep.equal([
      { name: 'A3', version: '1.0.0' },
      { name: 'abc', version: '2.2.2' },
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
        { name: 'a', version: '1' },
        { name: 'b', version: '2' },
      ]);
    }
  });

  it('decodes only the fields that it uses', async () => {
    const others = [
      'Maintainer: Jos\xe9 <a@b.example>',
      'Description: \xff\xfe\n \xc3',
      'X-\xe9: y',
      'Author: Jos\xc3\xa0',
    ];
    for (const other of others) {
      const stanza = Buffer.from(`Package: a\n${other}\nVersion: 1~\xc3\xa0\n`, 'latin1');
      expect(await convertFrom(stanza), other).to.deep.equal([{ name: 'a', version: '1~à' }]);
    }
  });

  const good = 'Package: a\nVersion: 1\n';
  for (const [what, files, reason] of [
    [
      'without Version',
      [good, `${good}\nPackage: b\nArchitecture: all\n`],
      'file 2: line 4: the stanza of "b" has no Version',
    ],
    ['without Package', ['Origin: Debian\nSuite: stable\n'], 'line 1: name is not a string: it is missing'],
    ['with a line that is no field', [`${good}<p>\n`], 'line 3: expected a field of a Packages index: "<p>"'],
    ['without stanzas', ['\n\n'], 'expected a Packages index, but it has no stanza'],
    ['that is empty, like all others', ['', '\n'], 'file 2: expected a Packages index, but it has no stanza'],
    [
      'with a name in Latin-1',
      [Buffer.from(`${good}\nPackage: caf\xe9\nVersion: 1\n`, 'latin1')],
      'line 4: not valid UTF-8',
    ],
    [
      'with a version cut within a character',
      [Buffer.from('Package: a\nversion: 1\xe2\x82\n', 'latin1')],
      'line 1: not valid UTF-8',
    ],
    [
      'that is missing',
      [good, undefined as never],
      "file 2: the dataset's server responded with 404 instead of 200",
    ],
    ['whose xz has a dictionary of 65 MiB', [XZ_65], TOO_LARGE],
    ['whose xz has a dictionary of 128 MiB', [good, XZ_128], `file 2: ${TOO_LARGE}`],
    ['whose xz has a filter', [XZ_DELTA], UNSUPPORTED],
    ['whose xz has SHA-256', [XZ_SHA256], UNSUPPORTED],
    [
      'whose xz is cut off',
      [good, XZ.subarray(0, -20)],
      'file 2: the xz is cut off or damaged: get_next_output failed with error code 8',
    ],
  ] as [string, Body[], string][]) {
    it(`rejects an index ${what}`, async () => {
      expect(await convertFrom(...files)).to.equal(reason);
    });
  }
});
