import { readFileSync } from 'node:fs';
import { expect } from 'chai';

/** The part of a package in package-lock.json that the test reads. */
interface LockedPackage {
  version: string;
  /** An SPDX expression, copied from the package by npm. */
  license?: string | undefined;
  /** Only development dependencies lead to it: it is not in the image. */
  dev?: boolean;
}

/** Permissive licenses whose only condition is to keep their text, which `node_modules` of the image does. */
const PERMISSIVE = ['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'ISC', 'MIT'];

/**
 * Packages for development with another license, or none in the lock file. Each was reviewed: the license as
 * written there, and why it is acceptable. A package without a license has a version, so that the next one is
 * reviewed, too.
 */
const REVIEWED: Record<string, { license?: string; version?: string; reason: string }> = {
  argparse: {
    license: 'PSF-2.0',
    reason: 'permissive; the license of the Python module it was ported from',
  },
  'argparse@2.0.1': { license: 'Python-2.0', reason: 'the same, an earlier version' },
  'axe-core': {
    license: 'MPL-2.0',
    reason: 'copyleft for changes to its own files; loaded unchanged into the pages of browser tests',
  },
  'caniuse-lite': {
    license: 'CC-BY-4.0',
    reason: 'data that has to be attributed if it is passed on; read by the compiler that Stryker uses',
  },
  pako: { license: '(MIT AND Zlib)', reason: 'permissive, both' },
  tweetnacl: { license: 'Unlicense', reason: 'public domain' },
  // These have MIT in the field `licenses`, an obsolete form that npm does not copy.
  buildcheck: { version: '0.0.7', reason: 'MIT' },
  'cpu-features': { version: '0.0.10', reason: 'MIT' },
  ssh2: { version: '1.17.0', reason: 'MIT' },
};

describe('The licenses of the dependencies', () => {
  const { lockfileVersion, packages } = JSON.parse(
    readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8'),
  ) as { lockfileVersion: number; packages: Record<string, LockedPackage> };
  const locked = Object.entries(packages)
    .filter(([path]) => path !== '')
    .map(([path, { version, license, dev = false }]) => {
      const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
      return { name, version, license, dev };
    });
  const unusual = locked.filter(({ license = '' }) => !PERMISSIVE.includes(license));

  it('are in a lock file of the expected format, with packages of both kinds', () => {
    expect(lockfileVersion).to.equal(3);
    expect(locked.filter(({ dev }) => dev)).to.have.length.greaterThan(100);
    expect(locked.filter(({ dev }) => !dev)).to.have.length.greaterThan(50);
  });

  it('are permissive for everything in the image, without exceptions', () => {
    const inImage = unusual.filter(({ dev }) => !dev);
    expect(inImage.map(describeLicense)).to.deep.equal([]);
  });

  it('are permissive or reviewed for everything else', () => {
    const unknown = unusual.filter(({ name, version, license }) => {
      const reviewed = REVIEWED[`${name}@${version}`] ?? REVIEWED[name];
      if (reviewed === undefined) return true;
      return reviewed.license !== license || (reviewed.version ?? version) !== version;
    });
    expect(unknown.map(describeLicense)).to.deep.equal([]);
  });

  it('have no exception that is no longer needed', () => {
    const needed = new Set(unusual.flatMap(({ name, version }) => [name, `${name}@${version}`]));
    expect(Object.keys(REVIEWED).filter((name) => !needed.has(name))).to.deep.equal([]);
  });

  it('are in docs/evidence/dependencies.md for every direct dependency, with its version', () => {
    const guide = readFileSync(new URL('../../docs/evidence/dependencies.md', import.meta.url), 'utf8');
    const rows = [...guide.matchAll(/^\| `([^`]+)` +\| ([\d.]+) +\|[^|]*\| (\S+)/gm)];
    const listed = rows.map(([, ...cells]) => cells.join(' '));
    const { dependencies, devDependencies } = packages[''] as unknown as Record<string, object>;
    const direct = Object.keys({ ...dependencies, ...devDependencies }).map((name) => {
      const { version, license } = packages[`node_modules/${name}`] ?? {};
      return [name, version, license].join(' ');
    });
    expect(listed.sort()).to.deep.equal(direct.sort());
  });
});

function describeLicense({ name, version, license }: LockedPackage & { name: string }): string {
  return `${name}@${version}: ${license ?? 'no license in package-lock.json'}`;
}
