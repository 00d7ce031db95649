import { setTimeout as pause } from 'node:timers/promises';
import { pick } from '../../fixtures/random.js';
import type { EngineLink } from '../../support/engine-link.js';
import type { Stack } from '../stack.js';

/** Something that goes wrong while the service is read. */
export interface Fault {
  name: string;
  /** Whether the process of a replica ends, so that its memory starts again from the beginning. */
  endsReplica?: true;
  /** Causes it, asserts what the service does, and removes it. */
  inject: (stack: Stack) => Promise<void>;
}

/** A fault that no replica ends by. */
export function fault(name: string, inject: Fault['inject']): Fault {
  return { name, inject };
}

/** Cuts the connections of one of these links after the other. @param pauseMs after each. */
export async function cutConnections(
  { random }: Stack,
  links: readonly EngineLink[],
  times: number,
  pauseMs: number,
): Promise<void> {
  for (let i = 0; i < times; i++) {
    pick(random, links).cut();
    await pause(pauseMs);
  }
}
