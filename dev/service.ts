import type { Paths } from './paths.js';

/** A real Elasticsearch or Redis that this process started. */
export interface Service {
  /** Its name and where its program comes from, for messages. */
  description: string;
  url: string;
  /** Stops it gracefully and frees its resources. */
  stop(): Promise<unknown>;
  /** Kills it, like a crash. */
  kill(): Promise<void>;
  /**
   * Freezes it, like an overloaded or swapping machine: it keeps its connections open and does not respond.
   */
  pause(): Promise<void>;
  /** After `pause()`. */
  resume(): Promise<void>;
  /** After `kill()`: starts it again with the same data at the same address. */
  restart(): Promise<void>;
}

/** The setup failed, for a reason that the user can correct. The message is for the terminal. */
export class SetupError extends Error {
  override readonly name = 'SetupError';
}

/** Prints progress to the terminal. */
export type Log = (line: string) => void;

/** Options for the start of a service. */
export interface StartOptions {
  paths: Paths;
  /** Folder of the service's data, configuration and log. */
  folder: string;
  /** Port to use if it is free. */
  usualPort?: number | undefined;
  env: NodeJS.ProcessEnv;
  log: Log;
  signal: AbortSignal;
}
