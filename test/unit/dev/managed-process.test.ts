import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { constants, getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { ManagedProcess } from '../../../src/dev/managed-process.js';

/** Starts a child, and prints the ids of both. */
const PROGRAM = `
const child = require('node:child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
child.on('spawn', () => console.log(process.pid + ' ' + child.pid + ' ready'));
setInterval(() => {}, 1000);`;

describe('ManagedProcess', () => {
  let folder: string;
  before(async () => (folder = await mkdtemp(join(tmpdir(), 'package-registry-search-test-'))));
  after(() => rm(folder, { recursive: true }));

  it('sets the niceness of all threads of a program and its children', async () => {
    const logFile = join(folder, 'log');
    const program = new ManagedProcess([process.execPath, '-e', PROGRAM], {
      cwd: folder,
      env: {},
      runAs: undefined,
      logFile,
    });
    try {
      const isReady = async () => (await readFile(logFile, 'utf8')).includes('ready');
      await program.waitUntil(isReady, 'The program', 15_000, new AbortController().signal);
      // Higher than that of this process, because only root may lower it.
      const niceness = Math.min(constants.priority.PRIORITY_LOW, getPriority() + 3);
      program.setNiceness(niceness);
      const pids = (await readFile(logFile, 'utf8')).split(' ').slice(0, 2);
      for (const pid of pids) {
        const threads = await readdir(`/proc/${pid}/task`);
        expect(threads.length).to.be.greaterThan(1);
        expect(threads.map((thread) => getPriority(Number(thread)))).to.deep.equal(
          threads.map(() => niceness),
        );
      }
    } finally {
      await program.stop();
    }
  });
});
