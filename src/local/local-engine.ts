import getPort from 'get-port';
import type { Engine } from './engine.js';
import type { SupervisedProgram } from './supervised.js';

const ATTEMPTS = 3;

interface LocalEngineOptions {
  description: string;
  scheme: 'http' | 'redis';
  usualPort: number;
  /** Starts the program on a port of 127.0.0.1 and waits until it is ready. */
  launch: (port: number) => Promise<SupervisedProgram>;
}

/** An engine that runs as a program of this machine, on its usual port or, where that is taken, on a free one. */
export async function startLocalEngine(options: LocalEngineOptions): Promise<Engine> {
  const { description, scheme, usualPort, launch } = options;
  const first = await onFreePort(usualPort, launch);
  let { program } = first;
  return {
    description,
    url: `${scheme}://127.0.0.1:${first.port}`,
    stop: () => program.stop(),
    kill: () => program.kill(),
    pause: () => program.signal('SIGSTOP'),
    resume: () => program.signal('SIGCONT'),
    revive: async () => {
      program = await launch(first.port);
    },
  };
}

/** Tries another port where something takes the first one between the look and the start. */
async function onFreePort(usual: number, launch: LocalEngineOptions['launch']) {
  for (let attempt = 1; ; attempt++) {
    const port = await getPort(attempt === 1 ? { port: usual } : {});
    try {
      return { port, program: await launch(port) };
    } catch (error) {
      if (attempt === ATTEMPTS || !/address already in use/i.test((error as Error).message)) throw error;
    }
  }
}
