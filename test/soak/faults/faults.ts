import { clientFaults } from './client-faults.js';
import { elasticsearchFaults } from './elasticsearch-faults.js';
import type { Fault } from './fault.js';
import { replicaFaults } from './replica-faults.js';
import { redisFaults } from './redis-faults.js';
import { snapshotFaults } from './snapshot-faults.js';

/** All faults of the soak: those that meet the load of readers. Others have tests of their own. */
export const FAULTS: readonly Fault[] = [
  ...clientFaults,
  ...redisFaults,
  ...elasticsearchFaults,
  ...replicaFaults,
  ...snapshotFaults,
];
