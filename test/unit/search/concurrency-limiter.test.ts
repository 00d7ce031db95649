import { expect } from 'chai';
import { ConcurrencyLimiter, OverloadedError } from '../../../src/search/concurrency-limiter.js';

/** Runs a task in a slot of the limiter. */
async function run<T>(limiter: ConcurrencyLimiter, task: () => Promise<T>): Promise<T> {
  await limiter.acquire();
  return task().finally(() => limiter.release());
}

/** Tasks that end on demand. */
function tasks() {
  const running = new Map<number, () => void>();
  const started: number[] = [];
  const task = (id: number) => () => {
    started.push(id);
    return new Promise<number>((resolve) => running.set(id, () => resolve(id)));
  };
  const end = async (id: number) => {
    await new Promise(setImmediate);
    running.get(id)?.();
    await new Promise(setImmediate);
  };
  return { task, end, started };
}

describe('ConcurrencyLimiter', () => {
  it('runs a limited number of tasks at a time, in order', async () => {
    const limiter = new ConcurrencyLimiter({ running: 2, waiting: 10 });
    const { task, end, started } = tasks();
    const results = Promise.all([1, 2, 3, 4].map((id) => run(limiter, task(id))));
    await new Promise(setImmediate);
    expect(started).to.deep.equal([1, 2]);
    await end(2);
    expect(started).to.deep.equal([1, 2, 3]);
    await end(1);
    expect(started).to.deep.equal([1, 2, 3, 4]);
    for (const id of [3, 4]) await end(id);
    expect(await results).to.deep.equal([1, 2, 3, 4]);
  });

  it('rejects a task at once only while the queue is full', async () => {
    const limiter = new ConcurrencyLimiter({ running: 1, waiting: 1 });
    const { task, end, started } = tasks();
    const first = run(limiter, task(1));
    const second = run(limiter, task(2));
    const refused = await run(limiter, task(3)).catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(OverloadedError);
    for (const id of [1, 2]) await end(id);
    await Promise.all([first, second]);
    const fourth = run(limiter, task(4));
    await end(4);
    expect(await fourth).to.equal(4);
    expect(started).to.deep.equal([1, 2, 4]);
  });

  it('frees the slot of a failed task', async () => {
    const limiter = new ConcurrencyLimiter({ running: 1, waiting: 1 });
    const failing = run(limiter, () => Promise.reject(new Error('broken')));
    const next = run(limiter, () => Promise.resolve('done'));
    expect(await failing.catch((error: unknown) => (error as Error).message)).to.equal('broken');
    expect(await next).to.equal('done');
  });
});
