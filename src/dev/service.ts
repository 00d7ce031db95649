/** A real Elasticsearch or Redis that this process started. */
export interface Service {
  /** For people: what it is and where it comes from. */
  description: string;
  url: string;
  /** Ends it in good order and frees what it held. */
  stop(): Promise<void>;
  /** Ends it at once, as a crash would. */
  kill(): Promise<void>;
  /** Lets it stand still, as a machine that is overloaded or swaps: it holds its connections and answers nothing. */
  pause(): Promise<void>;
  /** After `pause()`. */
  resume(): Promise<void>;
  /** After `kill()`: runs it again with the same data at the same address. */
  restart(): Promise<void>;
}

/** What is missing, in one line for the person at the terminal. */
export class SetupError extends Error {
  override readonly name = 'SetupError';
}

/** Tells the person at the terminal what goes on. */
export type Log = (line: string) => void;
