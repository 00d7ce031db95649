import getPort, { portNumbers } from 'get-port';

const ATTEMPTS = 3;

/**
 * Range in which free ports are searched for, below the ephemeral ports of common systems. An outgoing connection could
 * take an ephemeral port while the service on this port restarts. A client could even connect to itself.
 */
const FIRST = 20_000;
const LAST = 32_767;

/**
 * Starts something on its usual port or, if it is taken or undefined, on a free one.
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

/** The usual port if it is free, otherwise another one. */
export function freePort(usual?: number): Promise<number> {
  return getPort({ port: candidates(usual) });
}

/** The usual port, then the range from a random start, because other processes search for ports at the same time. */
function* candidates(usual: number | undefined): Generator<number> {
  if (usual !== undefined) yield usual;
  const from = FIRST + Math.floor(Math.random() * (LAST - FIRST));
  yield* portNumbers(from, LAST);
  yield* portNumbers(FIRST, from);
}
