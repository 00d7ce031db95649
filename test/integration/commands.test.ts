import { expect } from 'chai';
import type { PackageEntry } from '../../src/search/package-document.js';
import { bundledPackages, datasetFile, packagesNamed, toCsv } from '../support/datasets.js';
import { datasetServer, heldBack } from '../support/dataset-server.js';
import { engines } from '../support/engines.js';
import { SpawnedCli } from '../support/spawn-cli.js';
import { newSlug, useService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

describe('The command line', function () {
  this.timeout(60_000);
  const suite = useService(() => packagesNamed(['alpha', 'beta', 'gamma']));

  async function program(
    script: string,
    args: string[],
    env: Record<string, string> = {},
  ): Promise<SpawnedCli> {
    const { elasticsearch, redis } = await engines();
    return new SpawnedCli(
      `src/cli/${script}.ts`,
      {
        ELASTICSEARCH_URL: elasticsearch.url,
        REDIS_URL: redis.url,
        REGISTRY_SLUG: suite.service.slug,
        ...env,
      },
      args,
    );
  }

  async function run(script: string, args: string[] = [], env?: Record<string, string>) {
    const command = await program(script, args, env);
    const code = await command.exit();
    const { stdout, stderr } = command;
    return { code, stdout, stderr };
  }

  async function serves(names: string[]): Promise<void> {
    await waitFor(
      async () =>
        ((await suite.service.get('/browse')).body.results as PackageEntry[])
          .map(({ name }) => name)
          .join() === names.join(),
      `${names.join(', ')} to be served`,
      3000,
    );
  }

  it('cannot roll back before the first rebuild', async () => {
    const { code, stderr } = await run('rollback');
    expect(code).to.equal(1);
    expect(stderr).to.match(/^there is no generation before \S+\n$/);
    await serves(['alpha', 'beta', 'gamma']);
  });

  it('rebuilds from a file, and prints each phase on a line without a terminal', async () => {
    const dataset = await datasetFile(toCsv(packagesNamed(['delta', 'epsilon', 'zeta'])));
    const { code, stdout, stderr } = await run('rebuild', ['--dataset', new URL(dataset.url).pathname]);
    await dataset.remove();
    expect(stderr).to.equal('');
    expect(code).to.equal(0);
    const lines = stdout.trim().split('\n');
    expect(lines).to.include('Snapshot: loading …');
    expect(lines.at(-1)).to.match(new RegExp(`^Serving ${suite.service.alias}-\\S+ now\\.$`));
    await serves(['delta', 'epsilon', 'zeta']);
  });

  it('rolls back to the previous generation, and forward again', async () => {
    const { code, stdout } = await run('rollback');
    expect(code).to.equal(0);
    expect(stdout).to.match(/^Serving \S+ now\.\n$/);
    await serves(['alpha', 'beta', 'gamma']);
    expect((await run('rollback')).code).to.equal(0);
    await serves(['delta', 'epsilon', 'zeta']);
  });

  it('fails with the reason in one line, and keeps the current snapshot', async () => {
    const smaller = await datasetFile(toCsv(packagesNamed(['eta'])));
    const shrunken = await run('rebuild', ['--dataset', smaller.url]);
    expect(shrunken.code).to.equal(1);
    expect(shrunken.stderr).to.match(
      /^the rebuild failed, .*: the snapshot has 1 packages, .* force=true .*\n$/,
    );
    await serves(['delta', 'epsilon', 'zeta']);
    expect((await run('rebuild', ['--dataset', smaller.url, '--force'])).code).to.equal(0);
    await serves(['eta']);
    await smaller.remove();
  });

  it('prints its usage', async () => {
    const expectUsage = async (args: string[]) => {
      const { code, stderr } = await run('rebuild', args);
      expect(code, args.join(' ')).to.equal(2);
      expect(stderr).to.contain('usage: npm run rebuild');
    };
    const expectVariableNamed = async () => {
      const { code, stderr } = await run('rollback', [], { ELASTICSEARCH_URL: '' });
      expect(code).to.equal(2);
      expect(stderr).to.equal('ELASTICSEARCH_URL is required, such as http://127.0.0.1:9200\n');
    };
    await Promise.all([...[['--what'], ['--dataset'], ['file.csv']].map(expectUsage), expectVariableNamed()]);
  });

  it('does not wait for another rebuild, and stops on SIGTERM without leftovers', async () => {
    const held = heldBack(() => toCsv(bundledPackages()));
    const origin = await datasetServer(held.listener);
    const first = await program('rebuild', ['--dataset', origin.url]);
    try {
      await first.prints(/downloading/, 20_000);
      const [second, rollback] = await Promise.all([
        run('rebuild', ['--dataset', origin.url]),
        run('rollback'),
      ]);
      expect(second.code).to.equal(3);
      expect(second.stderr).to.match(/^another rebuild has been running since \S+: downloading, 0 rows\n$/);
      expect(rollback.code).to.equal(3);
      expect(await first.stop()).to.equal(130);
      expect(first.stderr).to.equal('stopped; the current snapshot stays in service\n');
    } finally {
      held.release();
      await origin.close();
    }
    await serves(['eta']);
    expect(await suite.service.indices()).to.have.length(2);
  });

  it('reports in one line that Elasticsearch or Redis does not respond', async () => {
    const env = { REGISTRY_SLUG: newSlug() };
    const [without, nowhere] = await Promise.all([
      run('rebuild', [], { ...env, REDIS_URL: 'redis://127.0.0.1:1' }),
      run('rollback', [], { ...env, ELASTICSEARCH_URL: 'http://127.0.0.1:1' }),
    ]);
    expect(without.code).to.equal(1);
    expect(without.stderr).to.equal('Redis does not respond: the rebuild lock cannot be acquired\n');
    expect(nowhere.code).to.equal(1);
    expect(nowhere.stderr).to.match(
      /^Elasticsearch does not respond at ELASTICSEARCH_URL \(.*\): start it, or correct the address\n$/,
    );
  });
});
