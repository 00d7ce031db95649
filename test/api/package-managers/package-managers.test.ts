import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findPaths } from '../../../dev/paths.js';
import { run } from '../../../dev/run.js';
import { describeSearchCommand, npmLike, type SearchCommand } from '../../support/search-command.js';

/** Old and new releases of pip, and the newest releases of the others. */
const PIPS = ['23.3.2', '26.3'];
const NPM = 'npm@12.2.2';
const PNPM = 'pnpm@12.21.0';

const { programs } = findPaths(process.env);
const NODE_MODULES = join(programs, 'package-managers');

/** Commands of packages in `NODE_MODULES`. */
const npmProgram = (path: string) => [process.execPath, join(NODE_MODULES, 'node_modules', path)];

const pnpm: SearchCommand = {
  ...npmLike('pnpm search', []),
  line: (base, words) => [...npmProgram('pnpm/bin/pnpm.mjs'), 'search', '--registry', base, ...words],
  env: { pnpm_config_fetch_retries: '0' },
  printed: (name, version, description) => [
    name,
    ...(description === '' ? [] : [description]),
    `Version ${version}`,
    `https://npmx.dev/package/${name}`,
  ],
  nothing: { status: 0, output: /^No packages found/ },
  failure: (detail) => new RegExp(`Search failed with status .*${detail.replaceAll(' ', '[ │]+')}`),
};

const cargo: SearchCommand = {
  title: 'cargo search',
  line: (base, words) => ['cargo', 'search', '--index', `sparse+${base}/`, ...words],
  printed: (name, version, description) => [
    `${name} = "${version}"${description === '' ? '' : ` # ${description}`}`,
  ],
  nothing: { status: 0, output: /Updating \S+ index( note: .*)?$/ },
  failure: (detail) => new RegExp(`responded with an error \\(status \\d+ [\\w ]+\\): ${detail}`),
};

const pipOf = (version: string, python: () => string): SearchCommand => ({
  title: `pip ${version} search`,
  line: (base, words) => [python(), '-m', 'pip', 'search', '--index', `${base}/pypi`, ...words],
  printed: (name, version, description) => [`${name} (${version}) - ${description}`],
  nothing: { status: 23, output: /^Command failed: \S+ -m pip [^\n]*$/ },
  failure: (detail) => new RegExp(`ERROR: XMLRPC request failed \\[code: \\d+\\] ${detail}`),
});

const composer: SearchCommand = {
  title: 'composer search',
  line: async (url, words, folder) => {
    const repositories = [{ type: 'composer', url }, { packagist: false }];
    const config = { repositories, config: { 'secure-http': false } };
    await writeFile(join(folder, 'composer.json'), JSON.stringify(config));
    return ['composer', 'search', '--no-interaction', ...words];
  },
  printed: (name, _version, description) => [`${name} ${description}`],
  nothing: {
    status: 0,
    output: /^(Warning: Accessing 127\.0\.0\.1 over http which is an insecure protocol\.)?$/,
  },
  failure: (detail) => new RegExp(`Warning from \\S+: ${detail}`),
};

describe('Package managers', () => {
  const pythons: string[] = [];

  before(async function () {
    this.timeout(5 * 60_000);
    const install = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', NODE_MODULES];
    await run('npm', [...install, NPM, PNPM]);
    for (const version of PIPS) {
      const folder = join(programs, `pip-${version}`);
      pythons.push((await run('scripts/python-environment.sh', [folder, `pip==${version}`])).trim());
    }
    // Fails here, with its name, if a program is missing.
    for (const program of ['cargo', 'composer']) await run(program, ['--version']);
  });

  describeSearchCommand(npmLike(`${NPM} search`, npmProgram('npm/bin/npm-cli.js')));
  describeSearchCommand(pnpm);
  describeSearchCommand(cargo);
  PIPS.forEach((version, i) => describeSearchCommand(pipOf(version, () => pythons[i] ?? '')));
  describeSearchCommand(composer);
});
