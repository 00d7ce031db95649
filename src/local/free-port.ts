import getPort from 'get-port';

const ATTEMPTS = 3;

/**
 * Starts something on its usual port or, where that is taken, on a free one.
 * @param isTaken whether the start failed because something took the port between the look and the start: then another
 * one is tried.
 */
export async function onFreePort<T>(
  usual: number,
  start: (port: number) => Promise<T>,
  isTaken: (error: unknown) => boolean,
): Promise<{ port: number; started: T }> {
  for (let attempt = 1; ; attempt++) {
    const port = await getPort(attempt === 1 ? { port: usual } : {});
    try {
      return { port, started: await start(port) };
    } catch (error) {
      if (attempt === ATTEMPTS || !isTaken(error)) throw error;
    }
  }
}
