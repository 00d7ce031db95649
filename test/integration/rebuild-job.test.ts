import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import getPort from 'get-port';
import { parse } from 'yaml';
import { packagesNamed } from '../support/datasets.js';
import { REBUILD_SECRET, useService } from '../support/service.js';
import { runCommand } from '../support/spawn-cli.js';

interface CronJob {
  spec: {
    jobTemplate: { spec: { template: { spec: { containers: { command: string[]; args: string[] }[] } } } };
  };
}

const MANIFEST = new URL('../../deploy/kubernetes/components/rebuild-job/cron-job.yaml', import.meta.url);
const { spec } = parse(readFileSync(MANIFEST, 'utf8')) as CronJob;
const [container] = spec.jobTemplate.spec.template.spec.containers;

describe('The command of the CronJob in deploy/kubernetes', () => {
  const suite = useService(() => packagesNamed(['alpha', 'beta']));

  /** Runs it as the container would, but at the address of this service. */
  async function runJob(secret: string, address = suite.service.url) {
    const { command = [], args = [] } = container ?? {};
    const [, ...options] = command;
    const script = args.map((text) => text.replace('http://api:3000', address));
    expect(script).not.to.deep.equal(args);
    const env = { REBUILD_SECRET: secret };
    return runCommand('', env, [], ([node = '']) => [node, ...options, ...script]);
  }

  it('starts a rebuild of the service', async () => {
    const { code, stdout } = await runJob(REBUILD_SECRET);
    expect(stdout).to.match(/^202 \{"status":"rebuilding"/);
    expect(code).to.equal(0);
    await suite.service.idle();
    expect(suite.service.failure()).to.equal(undefined);
  });

  it('fails if the secret is wrong or nothing responds', async () => {
    const wrong = await runJob('wrong-change-me');
    expect(wrong.stdout).to.match(/^403 /);
    expect(wrong.code).to.equal(1);
    const { code, stderr } = await runJob(REBUILD_SECRET, `http://127.0.0.1:${await getPort()}`);
    expect(stderr).to.contain('fetch failed');
    expect(code).to.equal(1);
  });
});
