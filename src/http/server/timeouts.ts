/** Timeouts of clients, in milliseconds. */
export const SERVER_TIMEOUTS = {
  /** How long a client may take to send its headers, or its whole request. Slower ones get 408. */
  headers: 10_000,
  request: 15_000,
  /**
   * A connection with unread responses is reset if the kernel accepts nothing for this time, or if it pipelines and the
   * client has read nothing for this time. One that has been read slowly before has half as long again: the kernel accepts
   * more once a third of its buffer is free, on Linux 1.4 MB of 4 MB. A client that reads 60 KB/s takes 18 to 21 s for the
   * first part, and then 24 to 28 s for each.
   */
  unread: 25_000,
  /** How long a connection may pipeline without a pause, until a response is its last one. */
  pipelining: 10_000,
  /**
   * Idle timeout of a connection that has pipelined. The kernel may still buffer megabytes of unread responses; only closing the
   * connection shows whether the client reads them. Proxies need a longer idle timeout, but do not pipeline.
   */
  pipelinedIdle: 10_000,
  /** Idle timeout of others, longer than that of common proxies: no connection is closed while a proxy sends a request. */
  keepAlive: 75_000,
  /**
   * How long a client may take to close its side after the server has closed its own. Until then its input is
   * discarded, so that it receives the last response.
   */
  linger: 5_000,
  /** How long requests in flight may take to finish when the server stops. */
  drain: 8_000,
};
export type ServerTimeouts = Readonly<typeof SERVER_TIMEOUTS>;
