import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { expect } from 'chai';
import { newFolder } from '../../support/run-folder.js';

describe('Runs of tests', function () {
  this.timeout(10_000);
  let folder: string;

  beforeEach(() => (folder = newFolder()));

  /** The arguments of a shell that runs these lines. */
  const script = (...lines: string[]) => [
    '-c',
    [`export TMPDIR=${folder}`, 'set -euo pipefail', 'source scripts/test-runs.sh', ...lines].join('\n'),
  ];

  function check(...lines: string[]) {
    const { status, stdout } = spawnSync('bash', script(...lines), { encoding: 'utf8' });
    expect(readdirSync(folder), 'left behind').to.be.empty;
    return {
      status,
      lines: stdout
        .trimEnd()
        .replace(/ \d+ s$/gm, ' N s')
        .split('\n'),
    };
  }

  const TWO = 'run two bash -c "seq 1000; echo 40 passed, 0 failed" >/dev/null';

  it('are added up in the last line', () => {
    const { status, lines } = check('run one echo "3 passed, 0 failed"', TWO, 'conclude one two');
    expect(status).to.equal(0);
    expect(lines).to.deep.equal(['3 passed, 0 failed', 'one: N s', 'two: N s', '43 passed, 0 failed']);
  });

  it('repeat failures at the end of the output', () => {
    const report = '  1 failing\n\n  1) a test:\n     a reason\n\n1 passed, 1 failed';
    const failing = JSON.stringify(`printf 'a test\n\n  1 passing\n${report}\n'; exit 1`);
    const { status, lines } = check(`run one bash -c ${failing}`, TWO, 'show two', 'conclude one two');
    expect(status).to.equal(1);
    const end = ['', 'one:', ...report.split('\n'), 'one: N s', 'two: N s', '41 passed, 1 failed'];
    expect(lines.slice(-end.length)).to.deep.equal(end);
  });

  for (const [how, command, total] of [
    ['ended without a summary', 'run one echo began', '40 passed, 1 failed'],
    ['failed after its summary', 'run one bash -c "echo 3 passed, 0 failed; exit 7"', '43 passed, 1 failed'],
    ['did not start', ':', '40 passed, 1 failed'],
  ])
    it(`fail if one ${how}`, () => {
      const { status, lines } = check(command as string, TWO, 'conclude one two');
      expect(status).to.equal(1);
      expect(lines).to.include('one did not finish; the end of its output:');
      expect(lines.at(-1)).to.equal(total);
    });

  it('stop all processes that they started when they are terminated', async () => {
    const background = '{ run one bash -c "echo began; sleep 30"; run two echo never; } &';
    const lines = script('set -m', background, 'set +m', 'wait', 'conclude one two');
    const shell = spawn('bash', lines, { stdio: ['ignore', 'pipe', 'ignore'] });
    let output = '';
    shell.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      shell.kill('SIGTERM');
    });
    // Its output stays open while a process runs.
    const [code] = (await once(shell, 'close')) as [number | null];
    expect({ code, output }).to.deep.equal({ code: 143, output: 'began\n' });
    expect(readdirSync(folder)).to.be.empty;
  });
});
