/** Lengths of the tests that can run longer on demand; the defaults suit every run. */

/** Random histories that `/changes` is checked against. */
export const SEQUENCES = Number(process.env['CHANGES_SEQUENCES'] ?? 3);

/** How long replicas run unattended while their dataset changes, in seconds. */
export const UNATTENDED_SECONDS = Number(process.env['UNATTENDED_SECONDS'] ?? 5);

/** Searches in each of two snapshots of a name rule that are compared with brute force, an eighth as many look-ups, and a fiftieth of the names. */
export const RULE_SEARCHES = Number(process.env['RULE_SEARCHES'] ?? 60);

/** How long Elasticsearch hangs during a rebuild, in seconds: longer than the timeout of a report. */
export const HANG_SECONDS = Number(process.env['HANG_SECONDS'] ?? 6);

/** How long tests wait for the lock of a killed or suspended rebuild, in seconds. 0: they let it expire at once. */
export const LOCK_WAIT_SECONDS = Number(process.env['LOCK_WAIT_SECONDS'] ?? 0);
