import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parse } from 'yaml';
import packageJson from '../../package.json' with { type: 'json' };
import { run } from '../../dev/run.js';

const FOLDER = fileURLToPath(new URL('../../.github/', import.meta.url));
const RELEASE_NOTES = fileURLToPath(new URL('../../.github/release-notes.sh', import.meta.url));

/** The texts of all files of a kind, by path. */
function filesNamed(pattern: RegExp): [string, string][] {
  const paths = readdirSync(FOLDER, { recursive: true }).map(String);
  return paths
    .filter((path) => pattern.test(path))
    .map((path) => [path, readFileSync(FOLDER + path, 'utf8')]);
}

describe('.github', () => {
  it('pins every action to one commit and its version in all workflows', () => {
    const pins = new Map<string, string>();
    for (const [path, text] of filesNamed(/^(workflows|actions)\/.+\.yml$/)) {
      const uses = [...text.matchAll(/uses: (?!\.\/)(.+)/g)].map(([, action = '']) => action);
      for (const action of uses) {
        const [, name = '', pin = ''] = /^([\w/-]+)@([\da-f]{40} # v\d+\.\d+\.\d+)$/.exec(action) ?? [];
        expect(pin, `${path}: ${action}`).not.to.equal('');
        expect(pins.get(name) ?? pin, `${path}: ${action}`).to.equal(pin);
        pins.set(name, pin);
      }
    }
    expect(pins.size).to.be.greaterThan(5);
  });

  it('has no cache of another workflow where it publishes', () => {
    interface Steps {
      steps?: { uses?: string; with?: Record<string, unknown> }[];
    }
    const read = (path: string) => parse(readFileSync(FOLDER + path, 'utf8')) as unknown;
    const { jobs } = read('workflows/release.yml') as { jobs: Record<string, Steps> };
    // The checks of a release use it.
    const { runs } = read('actions/setup/action.yml') as { runs: Steps };
    const steps = [...Object.values(jobs), runs].flatMap((job) => job.steps ?? []);
    const nodes = steps.filter(({ uses }) => uses?.startsWith('actions/setup-node@'));
    expect(nodes).to.be.an('array').that.is.not.empty;
    for (const { with: inputs } of nodes) expect(inputs).to.include({ 'package-manager-cache': false });
    for (const { with: inputs = {} } of steps) expect(inputs).to.not.have.any.keys('cache', 'cache-from');
  });
});

describe('.github/release-notes.sh', () => {
  const { version } = packageJson;
  const refused = (tag: string) =>
    run(RELEASE_NOTES, [tag]).then(
      () => undefined,
      (error: unknown) => (error as { stderr: string }).stderr,
    );

  it('prints the section of the version with links to the files of the release', async () => {
    const notes = await run(RELEASE_NOTES, [`v${version}`, 'https://example.com/v1/']);
    expect(notes)
      .to.match(/^### \w/m)
      .and.not.match(/^## /m);
    const links = [...notes.matchAll(/\]\(([^)]+)\)/g)].map(([, link]) => link);
    for (const link of links) expect(link).to.match(/^(https?:\/\/|#)/);
  });

  it('refuses a tag that is not the version', async () => {
    expect(await refused(`v${version}0`)).to.equal(
      `the tag is v${version}0, but package.json has version ${version}\n`,
    );
  });
});
