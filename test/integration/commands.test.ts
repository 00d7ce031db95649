import type { RequestListener } from 'node:http';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
import { datasetFile, packagesNamed, toCsv } from '../support/datasets.js';
import { datasetServer, heldBack } from '../support/dataset-server.js';
import { withNodes } from '../support/node-servers.js';
import { removeRegistries } from '../support/registries.js';
import { inShell, runCommand, SpawnedCli } from '../support/spawn-cli.js';
import { environmentOf, newSlug, useService, type Service } from '../support/service.js';

/** The names that a service serves right after a command. */
async function served(service: Service): Promise<string[]> {
  await service.refresh();
  return ((await service.get('/browse')).body.results as PackageEntry[]).map(({ name }) => name);
}

describe('The command line', function () {
  this.timeout(60_000);
  const old = ['alpha', 'beta', 'gamma'];
  const suite = useService(() => packagesNamed(old));

  it('fails with the reason in one line', async () => {
    const { env } = suite.service;
    const early = await runCommand('cli/rollback', env);
    expect(early.code).to.equal(1);
    expect(early.stderr).to.match(/^there is no snapshot before \S+\n$/);
    await suite.dataset.write(toCsv(packagesNamed(['delta'])));
    const shrunken = await runCommand('cli/rebuild', env, ['--dataset', fileURLToPath(suite.dataset.url)]);
    expect(shrunken.code).to.equal(1);
    expect(shrunken.stderr).to.match(
      /^the rebuild failed: the snapshot has 1 packages, .* force=true or --force\n$/,
    );
    expect(await served(suite.service)).to.deep.equal(old);
  });

  it('builds a snapshot and reports what it skipped', async () => {
    const { env, alias } = suite.service;
    // Lines 3 to 13 are invalid.
    await suite.dataset.write(toCsv(packagesNamed(['delta'])) + 'x\n'.repeat(11));
    const weights = await datasetFile('name,weight\nDelta,1\ndelta-2,2\n');
    const tolerant = { ...env, DATASET_MAX_BAD_ROWS: '11', WEIGHTS_URL: weights.url };
    const args = ['--dataset', fileURLToPath(suite.dataset.url), '--force'];
    const { code, stdout, stderr } = await runCommand('cli/rebuild', tolerant, args);
    await weights.remove();
    expect(code).to.equal(0);
    const skipped = Array.from({ length: 10 }, (_, i) => `line ${i + 3}: 1 fields instead of 4`);
    const summary = '11 invalid rows were skipped, the first 10 of them:';
    const warning =
      'no package has the name of a weight, so all weights are 0: WEIGHTS_URL has 2 other names';
    expect(stderr.trimEnd().split('\n')).to.deep.equal([summary, ...skipped, warning]);
    // Each phase is a line without a terminal.
    expect(stdout).to.include('Snapshot: loading …\n');
    expect(stdout).to.match(new RegExp(`\nServing ${alias}-\\S+ now\\.\n$`));
    expect(await served(suite.service)).to.deep.equal(['delta']);
  });

  it('prints how the last rebuilds ended', async () => {
    const { code, stdout } = await runCommand('cli/rebuild', suite.service.env, ['--history']);
    expect(code).to.equal(0);
    const [last = '', before = '', ...others] = stdout.trimEnd().split('\n');
    expect(last).to.match(/^20\S+Z \| rebuilt \| 1 packages \| downloading \d\.\d, .*pruning \d\.\d s$/);
    expect(before).to.match(/ \| failed \| downloading .* s \| the snapshot has 1 packages, /);
    expect(others).to.deep.equal([]);
  });

  it('switches between two snapshots', async () => {
    const { env } = suite.service;
    const { code, stdout } = await runCommand('cli/rollback', env);
    expect(code).to.equal(0);
    expect(stdout).to.match(/^Serving \S+ now\.\n$/);
    expect(await served(suite.service)).to.deep.equal(old);
    const withoutRedis = await runCommand('cli/rollback', { ...env, REDIS_URL: '' });
    expect(withoutRedis).to.include({ code: 0, stderr: '' });
    expect(await served(suite.service)).to.deep.equal(['delta']);
  });

  it('completes a rebuild whose output cannot be written', async () => {
    const without = { WEIGHTS_URL: '', WEIGHTS_COLUMNS: '' };
    const env = { ...suite.service.env, DATASET_URL: suite.dataset.url, ...without };
    await suite.dataset.write(toCsv(packagesNamed(['unseen'])));
    const full = 'standard output cannot be written: ENOSPC: no space left on device, write\n';
    for (const [script, code, line] of [
      ['exec 3>&1; { "$@" 3>&-; echo "exit $?" >&3; } | head -1 > /dev/null', 0, ''],
      ['"$@" > /dev/full; echo "exit $?"', 1, full],
    ] as const) {
      const [oldest] = await suite.service.indices();
      const { stdout, stderr } = await runCommand('cli/rebuild', env, ['--force'], inShell(script));
      expect({ stdout, stderr }).to.deep.equal({ stdout: `exit ${code}\n`, stderr: line });
      expect(await suite.service.indices()).not.to.include(oldest);
    }
  });

  it('continues without its terminal after nohup', async () => {
    const held = heldBack(() => toCsv(packagesNamed(['held'])));
    const origin = await datasetServer(held.listener);
    const args = ['--force', '--dataset', origin.url];
    // Interactive shells, too, give each command a process group of its own.
    const program = new SpawnedCli('cli/rebuild', suite.service.env, args, inShell('exec nohup setsid "$@"'));
    try {
      await program.prints(/downloading/, 20_000);
      process.kill(-(program.pid ?? 0), 'SIGHUP');
    } finally {
      held.release();
    }
    expect(await program.exit()).to.equal(0);
    await origin.close();
    expect(await served(suite.service)).to.deep.equal(['held']);
  });

  it('prints its usage or the variables that are missing', async () => {
    const { env } = suite.service;
    const [misspelt, unknown, incomplete] = await Promise.all([
      runCommand('cli/rebuild', env, ['--dataset', 'ftp://registry.example/names.csv']),
      runCommand('cli/keys', env, ['--password', 'change-me']),
      runCommand('cli/rollback', { ...env, ELASTICSEARCH_URL: '' }),
    ]);
    expect([misspelt.code, unknown.code, incomplete.code]).to.deep.equal([2, 2, 2]);
    expect(misspelt.stderr).to.match(/^--dataset, if it is a URL, must be http.*\nusage: /);
    expect(unknown.stderr).to.contain('usage: npm run --silent keys').and.not.contain('change-me');
    expect(incomplete.stderr).to.equal('ELASTICSEARCH_URL is required, such as http://127.0.0.1:9200\n');
  });

  it('does nothing but print its usage for --help', async () => {
    const { service } = suite;
    const before = [await service.indices(), await served(service)];
    for (const [command, npm, args] of [
      ['cli/rollback', 'npm run rollback', ['-h']],
      ['cli/keys', 'npm run --silent keys', ['--revoke-others', '--help']],
      ['dev/start', 'npm start', ['--help']],
    ] as const) {
      const { code, stdout, stderr } = await runCommand(command, service.env, [...args]);
      expect([code, stderr], command).to.deep.equal([0, '']);
      expect(stdout).to.match(new RegExp(`^usage: ${npm}\\b`));
    }
    expect([await service.indices(), await served(service)]).to.deep.equal(before);
  });

  it('begins no registry of the default name if REGISTRY_SLUG was left out', async () => {
    // Without any index, unlike the Elasticsearch of this run, perhaps.
    const listener: RequestListener = ({ url }, response) => {
      response.setHeader('Content-Type', 'application/json');
      if (url === '/') response.end('{"version":{"number":"9.4.0"}}');
      else response.writeHead(404).end('{"error":{"type":"index_not_found_exception"},"status":404}');
    };
    await withNodes([listener], async ([ELASTICSEARCH_URL = '']) => {
      for (const command of ['cli/rebuild', 'cli/rollback']) {
        const { code, stderr } = await runCommand(command, { ELASTICSEARCH_URL });
        expect(code, stderr).to.equal(2);
        expect(stderr).to.match(
          /^REGISTRY_SLUG must be set to that of the server, since the registry "registry" has no snapshot yet\n$/,
        );
      }
    });
    const slug = newSlug();
    const named = await runCommand('cli/rollback', environmentOf(slug));
    expect(named.stderr).to.equal('no snapshot is served yet\n');
    await removeRegistries([slug]);
  });

  it('does not run beside a rebuild that stops on SIGTERM without leftovers', async () => {
    const { env } = suite.service;
    const before = [await served(suite.service), await suite.service.indices()];
    const held = heldBack(() => toCsv(packagesNamed(['held'])));
    const origin = await datasetServer(held.listener);
    const args = ['--dataset', origin.url];
    const first = new SpawnedCli('cli/rebuild', env, args);
    try {
      await first.prints(/downloading/, 20_000);
      const [second, rollback] = await Promise.all([
        runCommand('cli/rebuild', env, args),
        runCommand('cli/rollback', env),
      ]);
      expect(second.code).to.equal(3);
      expect(second.stderr).to.match(/^another rebuild has been running since \S+: downloading, 0 rows\n$/);
      const stderr = 'a rebuild is running: stop it, because it will delete the previous snapshot\n';
      expect(rollback).to.include({ code: 3, stderr });
      expect(await first.stop()).to.equal(130);
      expect(first.stderr).to.equal('stopped; what is served has not changed\n');
    } finally {
      held.release();
      await first.stop();
      await origin.close();
    }
    expect([await served(suite.service), await suite.service.indices()]).to.deep.equal(before);
  });

  it('reports in one line that Elasticsearch does not respond', async () => {
    const env = { ...environmentOf(newSlug()), ELASTICSEARCH_URL: 'http://127.0.0.1:1' };
    for (const command of ['cli/rebuild', 'cli/rollback']) {
      const { code, stderr } = await runCommand(command, env);
      expect(code).to.equal(1);
      expect(stderr).to.match(
        /^Elasticsearch does not respond at ELASTICSEARCH_URL \(.*\): start it, or correct the address\n$/,
      );
    }
  });
});
