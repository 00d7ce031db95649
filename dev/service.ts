import type { Paths } from './paths.js';

/** A real Elasticsearch or Redis that this process started. */
export interface Service {
  /** Name of the service and origin of its program, for messages. */
  description: string;
  url: string;
  /** Stops the service gracefully and frees its resources. */
  stop(): Promise<unknown>;
  /** Kills the service, to simulate a crash. */
  kill(): Promise<void>;
  /**
   * Freezes the service, to simulate an overloaded machine. The service keeps its connections open and does not
   * respond.
   */
  pause(): Promise<void>;
  /** Ends a `pause()`. */
  resume(): Promise<void>;
  /** Starts the service again after `kill()`, at the same address. Elasticsearch keeps its data, Redis does not. */
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
