import { expect } from 'chai';
import { Redis } from 'ioredis';
import { packagesNamed } from '../support/datasets.js';
import { environmentOf, useService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

describe('A Redis that distributes keys over servers', () => {
  const suite = useService(() => packagesNamed(['alpha']));

  it('is never asked for two keys by one command', async () => {
    const { service } = suite;
    const redis = new Redis(environmentOf(service.slug)['REDIS_URL'] ?? '');
    const monitor = await redis.monitor();
    const commands: string[][] = [];
    // Commands of other tests have other slugs. What a script calls is part of its command.
    monitor.on('monitor', (_time, args: string[], source: string) => {
      if (source !== 'lua' && args[0] !== 'command' && args.some((arg) => arg.includes(service.slug)))
        commands.push(args);
    });
    await service.get('/search?q=alpha');
    await service.get('/debug-ip');
    await waitFor(() => commands.length > 0, 'the limits');
    monitor.disconnect();
    const keys = await Promise.all(
      commands.map(([name = '', ...args]) => redis.command('GETKEYS', name, ...args)),
    );
    expect(
      keys.map((found) => found.length),
      commands.join('\n'),
    ).to.deep.equal(commands.map(() => 1));
    redis.disconnect();
  });
});
