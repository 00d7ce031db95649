import type { Permission } from '../readers.js';
import type { Stack } from '../stack.js';

/** Latency of Elasticsearch that keeps a load going long enough to disturb it, and that searches tolerate, in milliseconds. */
export const SLOW_LOAD_MS = 60;

/** The report of a failed rebuild, for any reason. */
export const ANY_REASON = /"reason"/;

/** Something that goes wrong while the service is read. */
export interface Fault {
  name: string;
  /** The events of docs/failure-modes.md that it covers. */
  rows: readonly string[];
  /** Whether the process of a replica ends, so that its memory starts again from the beginning. */
  endsReplica?: true;
  /** Whether it takes half a minute or more: left out of a short soak. */
  isSlow?: true;
  /** Causes it, asserts what the service does, and removes it. */
  inject(stack: Stack): Promise<void>;
  /** What readers may get besides good responses. */
  permits?: Permission;
}
