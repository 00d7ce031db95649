/** Points of each client in a fixed window of time, which begins with the client's first request. */
export interface RateLimitPolicy {
  /** Names the policy in headers, metrics and Redis keys. */
  name: string;
  points: number;
  windowSeconds: number;
  /** Whether a client that used up its points while Redis was down stays blocked when Redis is back. */
  isLockout?: true;
}

/** The window of one client after a check. */
export interface RateLimitState {
  /** Whether the points of the check fitted into the limit; if not, none were added. */
  allowed: boolean;
  /** Points used in this window. */
  used: number;
  /** Until the window ends. */
  msLeft: number;
}
