import { readdir } from 'node:fs/promises';
import { constants, getPriority } from 'node:os';
import { expect } from 'chai';
import { useManagedPrograms } from '../../support/managed-program.js';

/** Starts a child, which prints the ids of both as soon as both have threads. */
const CHILD = `console.log(process.ppid + ' ' + process.pid + ' ready'); setTimeout(() => {}, 10_000)`;
const PROGRAM = `
require("node:child_process").spawn(process.execPath, ["-e", ${JSON.stringify(CHILD)}], { stdio: "inherit" });
setInterval(() => {}, 1000);`;

describe('ManagedProcess', () => {
  const start = useManagedPrograms();

  it('sets the niceness of all threads of a program and its children', async () => {
    const { program, output } = await start(PROGRAM, '', 'ready');
    try {
      // Higher than that of this process, because only root may lower it.
      const niceness = Math.min(constants.priority.PRIORITY_LOW, getPriority() + 3);
      program.setNiceness(niceness);
      for (const pid of output.split(' ').slice(0, 2)) {
        const threads = await readdir(`/proc/${pid}/task`);
        expect(threads.length).to.be.greaterThan(1);
        for (const thread of threads) expect(getPriority(Number(thread))).to.equal(niceness);
      }
    } finally {
      await program.stop();
    }
  });
});
