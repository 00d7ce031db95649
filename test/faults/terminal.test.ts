import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { bundledPackages, datasetFile, toCsv, type DatasetFile } from '../support/datasets.js';
import { EngineProxy, isBulk, type Hold } from '../support/engine-proxy.js';
import { engines } from '../support/engines.js';
import { removeRegistries } from '../support/registries.js';
import { environmentOf, newSlug } from '../support/service.js';
import { onTerminal, SpawnedCli, type Exit } from '../support/spawn-cli.js';

const CTRL_C = '\x03';

/** What hides and shows again: the cursor, and long lines by not wrapping them. */
const SETTINGS = [
  { off: '\x1b[?7l', on: '\x1b[?7h' },
  { off: '\x1b[?25l', on: '\x1b[?25h' },
];

/** The progress bar of a load is visible. */
const BAR = /\d+% \| \d+ of \d+ packages/;

describe('On a terminal,', function () {
  this.timeout(120_000);
  const slugs: string[] = [];
  let dataset: DatasetFile;
  let proxy: EngineProxy;

  before(async () => {
    dataset = await datasetFile(toCsv(bundledPackages().slice(0, 5000)));
    proxy = await EngineProxy.start(engines().elasticsearch.url);
  });

  after(async () => {
    await proxy.close();
    await dataset.remove();
    await removeRegistries(slugs);
  });

  /** Starts a program that loads a first snapshot. */
  function load(name: string): SpawnedCli {
    const slug = newSlug();
    slugs.push(slug);
    const env = { ...environmentOf(slug), ELASTICSEARCH_URL: proxy.url, DATASET_URL: dataset.url, PORT: '0' };
    return new SpawnedCli(name, env, [], onTerminal);
  }

  /** Starts it and waits until its bar is visible and the load is held. */
  async function loading(name: string): Promise<{ program: SpawnedCli; bulk: Hold }> {
    const bulk = proxy.hold('after', isBulk);
    const program = load(name);
    await bulk.arrived;
    await program.prints(BAR, 60_000);
    return { program, bulk };
  }

  function expectUsable({ stdout }: SpawnedCli): void {
    for (const { off, on } of SETTINGS)
      expect(stdout.lastIndexOf(on), stdout).to.be.at.least(stdout.lastIndexOf(off));
    expect(stdout).not.to.match(/^\s+at .*:\d+/m);
  }

  for (const [signal, stop, moments] of [
    ['Ctrl-C', (program) => program.type(CTRL_C), [/^pid/, /Snapshot: downloading/]],
    ['SIGTERM', (program) => program.signal('SIGTERM'), [/^pid/, /Snapshot: downloading/]],
    ['SIGHUP', (program) => program.signal('SIGHUP'), []],
  ] as [signal: string, stop: (program: SpawnedCli) => void, moments: RegExp[]][]) {
    for (const moment of moments) {
      it(`${signal} ends npm start at ${String(moment)}`, async () => {
        const program = load('dev/start');
        await program.prints(moment, 60_000);
        stop(program);
        // Before it handles signals, the signal itself ends it.
        expect(await program.exit(), program.stdout).to.be.oneOf(moment.test('pid') ? [0, 130, 143] : [0]);
        expectUsable(program);
      });
    }

    it(`${signal} ends npm start while its load does not get on`, async () => {
      const { program, bulk } = await loading('dev/start');
      stop(program);
      expect(await program.exit()).to.equal(0);
      bulk.release();
      expect(program.stdout.match(/Stopping/g)).to.have.lengthOf(1);
      expectUsable(program);
    });
  }

  for (const [command, name] of [
    ['npm start', 'dev/start'],
    ['npm run rebuild', 'cli/rebuild'],
  ] as const) {
    it(`a second Ctrl-C ends ${command} at once`, async () => {
      const { program, bulk } = await loading(name);
      const frozen = proxy.hang();
      const exit = program.exit();
      let code: Exit | undefined;
      while (code === undefined) {
        program.type(CTRL_C);
        code = await Promise.race([exit, pause(100, undefined)]);
      }
      frozen.release();
      bulk.release();
      expect(code, 'ended by the second signal').to.equal(130);
      expect(program.stdout).not.to.contain('stopped;');
      expectUsable(program);
    });
  }
});
