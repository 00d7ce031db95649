/** Lengths of the tests that can run longer on demand; the defaults suit every run. */

/** Random histories that `/changes` is checked against. */
export const SEQUENCES = Number(process.env['CHANGES_SEQUENCES'] ?? 3);

/** How long replicas run unattended while their dataset changes, in seconds. */
export const UNATTENDED_SECONDS = Number(process.env['UNATTENDED_SECONDS'] ?? 5);

/** Searches in each of two snapshots of a name rule that are compared with brute force, an eighth as many look-ups, and a fiftieth of the names. */
export const RULE_SEARCHES = Number(process.env['RULE_SEARCHES'] ?? 60);
