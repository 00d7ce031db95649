import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';

describe('Runs of tests', function () {
  this.timeout(10_000);
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'test-runs-'));
  });

  afterEach(() => rm(folder, { recursive: true }));

  const REPORT = '  1 failing\n\n  1) a suite\n       a test:\n     a reason\n\n1 passed, 1 failed';
  const FAILING = `printf 'a test\n\n  1 passing\n${REPORT}\n'; exit 1`;

  /** The arguments of a shell that runs these lines. */
  const script = (...lines: string[]) => [
    '-c',
    [`export TMPDIR=${folder}`, 'set -euo pipefail', 'source scripts/test-runs.sh', ...lines].join('\n'),
  ];

  function check(...lines: string[]) {
    const { status, stdout } = spawnSync('bash', script(...lines), { encoding: 'utf8' });
    expect(readdirSync(folder), 'left behind').to.be.empty;
    const output = stdout.trimEnd().replace(/ \d+ s$/gm, ' N s');
    return { status, lines: output.split('\n') };
  }

  it('are added up in the last line, after how long each took', () => {
    const { status, lines } = check(
      'run one echo "3 passed, 0 failed"',
      'run two echo "40 passed, 0 failed" >/dev/null',
      'conclude one two',
    );
    expect(status).to.equal(0);
    expect(lines).to.deep.equal(['3 passed, 0 failed', 'one: N s', 'two: N s', '43 passed, 0 failed']);
  });

  it('repeat failures at the end of the output', () => {
    const { status, lines } = check(
      `run one bash -c ${JSON.stringify(FAILING)}`,
      'run two bash -c "seq 1000; echo 40 passed, 0 failed" >/dev/null',
      'show two',
      'conclude one two',
    );
    expect(status).to.equal(1);
    const end = ['', 'one:', ...REPORT.split('\n'), 'one: N s', 'two: N s', '41 passed, 1 failed'];
    expect(lines.slice(-12)).to.deep.equal(end);
  });

  const broken: [how: string, command: string, end: string, total: string][] = [
    ['without a summary', 'echo began', 'began', '40 passed, 1 failed'],
    [
      'with an exit code other than 0 although no test failed',
      'bash -c "echo 3 passed, 0 failed; exit 7"',
      '3 passed, 0 failed',
      '43 passed, 1 failed',
    ],
  ];
  for (const [how, command, end, total] of broken) {
    it(`fail if one ended ${how}`, () => {
      const two = 'run two echo 40 passed, 0 failed';
      const { status, lines } = check(`run one ${command}`, two, 'conclude one two');
      expect(status).to.equal(1);
      const summary = ['', 'one did not finish; the end of its output:', end, 'one: N s', 'two: N s', total];
      expect(lines.slice(-6)).to.deep.equal(summary);
    });
  }

  it('fail if one did not start', () => {
    const { status, lines } = check('run one echo 3 passed, 0 failed', 'conclude one two');
    expect(status).to.equal(1);
    expect(lines.at(-1)).to.equal('3 passed, 1 failed');
  });

  it('stop all processes that they started when they are terminated', async () => {
    const began = Date.now();
    const background = '{ run one bash -c "echo began; sleep 30"; run two echo never; } &';
    const lines = script('set -m', background, 'set +m', 'wait', 'conclude one two');
    const shell = spawn('bash', lines, { stdio: ['ignore', 'pipe', 'ignore'] });
    let output = '';
    shell.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      shell.kill('SIGTERM');
    });
    const [code] = (await once(shell, 'close')) as [number | null];
    expect(code).to.equal(143);
    expect(output).to.equal('began\n');
    expect(Date.now() - began).to.be.lessThan(10_000);
    expect(readdirSync(folder)).to.be.empty;
  });
});
