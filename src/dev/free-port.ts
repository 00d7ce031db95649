import getPort, { portNumbers } from 'get-port';

const ATTEMPTS = 3;

/**
 * Free ports are taken from here: below those that systems lend to outgoing connections, of which one may take the port of
 * an engine that is away for a moment. Even that of a client that asks for the engine: it is then connected to itself.
 */
const FIRST = 20_000;
const LAST = 32_767;

/**
 * Starts something on its usual port or, if it is taken or there is none, on a free one.
 * @param isTaken whether the start failed because something took the port between the look and the start: then another
 * one is tried.
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

/** The usual one where it is free, or another one. */
export function freePort(usual?: number): Promise<number> {
  return getPort({ port: candidates(usual) });
}

/** The usual one, and then those from any one on, as others look for one at the same time. */
function* candidates(usual: number | undefined): Generator<number> {
  if (usual !== undefined) yield usual;
  const from = FIRST + Math.floor(Math.random() * (LAST - FIRST));
  yield* portNumbers(from, LAST);
  yield* portNumbers(FIRST, from);
}
