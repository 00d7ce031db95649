import getPort, { portNumbers } from 'get-port';

const ATTEMPTS = 3;

/**
 * Range of the free ports. It is below the ephemeral ports of common systems. While a service restarts, an outgoing
 * connection could take its port if the port were ephemeral. A client of the service could then even be connected to
 * itself.
 */
const FIRST = 20_000;
const LAST = 32_767;

/**
 * Calls `start` with the usual port. If that port is taken or undefined, calls `start` with a free port.
 * @param isTaken whether the start failed because the port was taken after the check. Then another port is tried.
 */
export async function onFreePort<T>(
  usual: number | undefined,
  start: (port: number) => Promise<T>,
  isTaken: (error: unknown) => boolean,
): Promise<{ port: number; started: T }> {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort(attempt === 1 ? usual : undefined);
    try {
      return { port, started: await start(port) };
    } catch (error) {
      if (attempt === ATTEMPTS || !isTaken(error)) throw error;
    }
  }
}

/** The usual port if it is free, otherwise another free port. */
export function freePort(usual?: number): Promise<number> {
  return getPort({ port: candidates(usual) });
}

/**
 * The usual port, then the ports of the range. The range is searched from a random port, because other processes search
 * for ports at the same time.
 */
function* candidates(usual: number | undefined): Generator<number> {
  if (usual !== undefined) yield usual;
  const from = FIRST + Math.floor(Math.random() * (LAST - FIRST));
  yield* portNumbers(from, LAST);
  yield* portNumbers(FIRST, from);
}
