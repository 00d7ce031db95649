import type { Service } from './service.js';
import { onFreePort } from './free-port.js';
import { ProcessError, type ManagedProcess } from './managed-process.js';

interface LocalServiceOptions {
  description: string;
  scheme: 'http' | 'redis';
  usualPort: number | undefined;
  /** Starts the program on a port of 127.0.0.1 and waits until it is ready. */
  launch: (port: number) => Promise<ManagedProcess>;
}

/** Starts a service as a local process, on its usual port if that port is free, otherwise on another free port. */
export async function startLocalService(options: LocalServiceOptions): Promise<Service> {
  const { description, scheme, usualPort, launch } = options;
  // Searches the whole output, because Elasticsearch prints a long stack trace after the reason.
  const isTaken = (error: unknown) =>
    error instanceof ProcessError && /address already in use/i.test(error.output);
  const { port, started } = await onFreePort(usualPort, launch, isTaken);
  let program = started;
  return {
    description,
    url: `${scheme}://127.0.0.1:${port}`,
    stop: () => program.stop(),
    kill: () => program.kill(),
    pause: () => program.signal('SIGSTOP'),
    resume: () => program.signal('SIGCONT'),
    restart: async () => {
      program = await launch(port);
    },
  };
}
