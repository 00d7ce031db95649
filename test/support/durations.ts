/** How much of the tests whose length can be chosen is run: little by default, for every run of the tests. */

/** Random histories that `/changes` is checked against. */
export const SEQUENCES = Number(process.env['CHANGES_SEQUENCES'] ?? 3);

/** For how long replicas are left alone with a dataset that changes, in seconds. */
export const UNATTENDED_SECONDS = Number(process.env['UNATTENDED_SECONDS'] ?? 20);
