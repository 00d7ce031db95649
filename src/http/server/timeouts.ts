/** Timeouts of clients, in milliseconds. */
export const SERVER_TIMEOUTS = {
  /**
   * Maximum time for the headers of a request, and for the whole request. Late headers get 408. After a late body, the
   * connection is closed.
   */
  headers: 10_000,
  request: 15_000,
  /**
   * A connection is closed if neither side makes progress for this time. The kernel accepts more of a response once a
   * third of the send buffer is free (on Linux 1.4 MB of 4 MB). A client that reads 60 KB/s frees a third in 18 to 28
   * s.
   */
  inactive: 40_000,
  /**
   * Idle timeout of a connection. Common proxies have shorter idle timeouts, so the server does not close a connection
   * while a proxy sends a request.
   */
  keepAlive: 75_000,
  /**
   * Time for a client to close its side of a connection after the last response. Until then, data from the client is
   * discarded.
   */
  linger: 5_000,
  /** How long requests in flight may take to finish when the server stops. */
  drain: 8_000,
};
export type ServerTimeouts = Readonly<typeof SERVER_TIMEOUTS>;
