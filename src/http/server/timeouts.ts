/** Timeouts of clients, in milliseconds. */
export const SERVER_TIMEOUTS = {
  /** How long a client may take to send its headers, or its whole request. Slower ones get 408. */
  headers: 10_000,
  request: 15_000,
  /**
   * A connection is closed if neither side makes progress for this time. The kernel accepts more of a response once a
   * third of its buffer is free (on Linux 1.4 MB of 4 MB). A client that reads 60 KB/s frees a third in 18 to 28 s.
   */
  inactive: 40_000,
  /**
   * Idle timeout. Common proxies have a shorter one, so no connection is closed while a proxy sends a request.
   */
  keepAlive: 75_000,
  /** Time for a client to close its side after its last response. Until then, its input is discarded. */
  linger: 5_000,
  /** How long requests in flight may take to finish when the server stops. */
  drain: 8_000,
};
export type ServerTimeouts = Readonly<typeof SERVER_TIMEOUTS>;
