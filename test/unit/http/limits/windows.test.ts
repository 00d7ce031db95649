import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { LocalWindows, type RateLimitPolicy } from '../../../../src/http/limits/windows.js';

// The same on Redis: test/integration/limits.test.ts.
describe('LocalWindows', () => {
  const windowsOf = (policy: Omit<RateLimitPolicy, 'name'>) => new LocalWindows({ name: 'test', ...policy });

  async function take(windows: LocalWindows, client: string, ...points: number[]) {
    const states: [allowed: boolean, used: number][] = [];
    for (const one of points) {
      const { allowed, used } = await windows.take(client, one);
      states.push([allowed, used]);
    }
    return states;
  }

  it('add points only if they fit, for each client', async () => {
    const windows = windowsOf({ points: 5, windowSeconds: 60 });
    expect(await take(windows, 'a', 3, 3, 2, 1)).to.deep.equal([
      [true, 3],
      [false, 3],
      [true, 5],
      [false, 5],
    ]);
    expect(await take(windows, 'b', 5)).to.deep.equal([[true, 5]]);
    expect((await windows.take('a', 1)).msLeft).to.be.within(59_000, 60_000);
  });

  it('tell without adding any whether points are left', async () => {
    const windows = windowsOf({ points: 1, windowSeconds: 60 });
    expect(await take(windows, 'a', 0, 0, 1, 0)).to.deep.equal([
      [true, 0],
      [true, 0],
      [true, 1],
      [false, 1],
    ]);
  });

  it('take bounded memory, whatever the number of clients, and keep the windows of active clients', async () => {
    const windows = windowsOf({ points: 5, windowSeconds: 60 });
    await take(windows, 'idle', 1);
    for (let i = 0; i < 20_000; i++) {
      if (i % 1000 === 0) await windows.take('active', 0);
      await windows.take(`client ${i}`, 1);
    }
    await take(windows, 'active', 5);
    expect(await take(windows, 'idle', 0)).to.deep.equal([[true, 0]]);
    expect(await take(windows, 'active', 0)).to.deep.equal([[false, 5]]);
  });

  it('end, however often the client returns', async () => {
    const windows = windowsOf({ points: 1, windowSeconds: 0.1 });
    expect(await take(windows, 'a', 1, 1)).to.deep.equal([[true, 1], [false, 1]]); // prettier-ignore
    await pause(60);
    expect(await take(windows, 'a', 1)).to.deep.equal([[false, 1]]);
    await pause(60);
    expect(await take(windows, 'a', 1)).to.deep.equal([[true, 1]]);
  });
});
