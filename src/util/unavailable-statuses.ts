/**
 * Statuses of a server that cannot be reached by its proxy or is not ready, such as a node that is starting or has no
 * master. Not 429: a busy server is available.
 */
export const UNAVAILABLE_STATUSES = [502, 503, 504];
