import { addressFaults } from './address-faults.js';
import { clientFaults } from './client-faults.js';
import { datasetFaults } from './dataset-faults.js';
import { elasticsearchFaults } from './elasticsearch-faults.js';
import type { Fault } from './fault.js';
import { operatorFaults } from './operator-faults.js';
import { processFaults } from './process-faults.js';
import { redisFaults } from './redis-faults.js';

/** All faults of the soak. */
export const FAULTS: readonly Fault[] = [
  ...clientFaults,
  ...redisFaults,
  ...elasticsearchFaults,
  ...addressFaults,
  ...datasetFaults,
  ...processFaults,
  ...operatorFaults,
];

/** The events of docs/evidence/failure-modes.md that the soak leaves to their own tests, and why. */
export const EXCLUDED: ReadonlyMap<string, string> = new Map([
  ...reason('reads are refused by contract', [
    'more than `MAX_CONNECTIONS` connections',
    'searches over 16 a node and 256 waiting',
    'the only node is killed',
    'the only node is paused or restarted in a load',
    'the cluster refuses searches by a setting',
    'the served index is deleted by hand',
    'it is closed by hand',
    'its `_meta` is not of this schema',
  ]),
  ...reason('the service must not serve yet', [
    'invalid at a cold start',
    'three replicas start without an index',
  ]),
  ...reason('needs another stack: security, or a request that is held between two steps', [
    'it rejects valid keys while it starts',
    'it rejects the key',
    'one of three nodes hangs ²',
    'only the reading key is set',
    'too busy for a part of the load (429)',
    'a merge takes longer than any request may',
    'comparing two snapshots stalls or takes too long ³',
    'a rollback is suspended before it takes effect',
    'the rebuild process cannot be started',
    'larger than allowed, or than the free disk',
    '`WEIGHTS_URL` fails, or half of it is missing',
    'becomes a replica; full; wants another password',
    'a user with the rights in the guide alone',
    'an update with a wrong key, address or image',
  ]),
  ...reason('concerns no replica that serves', [
    'standard output is on a full disk, or closed',
    'Ctrl-C or SIGTERM at any moment of `npm start`',
    'a second Ctrl-C while it stops',
    'the terminal of `npm start` is closed',
    'a command or server runs under `nohup`',
  ]),
  ...reason('takes ten minutes', ['no node can hold a copy']),
]);

function reason(why: string, rows: readonly string[]): [string, string][] {
  return rows.map((row) => [row, why]);
}
