import { CHANGES } from '../snapshot/change-record.js';
import { builtAt } from '../snapshot/index-names.js';
import { changeCounts } from '../snapshot/snapshot-meta.js';
import { SNAPSHOT_STATES, type SnapshotWatcher } from '../snapshot/snapshot-watcher.js';
import { PHASES } from '../rebuild/progress.js';
import type { RebuildService } from '../rebuild/rebuild-service.js';
import type { RebuildState } from '../rebuild/state.js';
import { counter, gauge, type Collector, type Sample } from './metrics.js';

export function ofSnapshot(snapshots: SnapshotWatcher): Collector[] {
  const meta = () => snapshots.current?.meta;
  return [
    gauge(
      'engine_state',
      'State of Elasticsearch and its index at the last poll',
      () => oneOf(SNAPSHOT_STATES, snapshots.state),
      'state',
    ),
    gauge('snapshot_packages', 'Packages of the snapshot that is served', () => meta()?.total),
    gauge('snapshot_taken_timestamp_seconds', 'When the snapshot that is served was taken', () =>
      toSeconds(meta()?.taken_at),
    ),
    gauge('snapshot_built_timestamp_seconds', 'When the index that is served was created', () =>
      toSeconds(snapshots.current && builtAt(snapshots.current.index)),
    ),
    gauge(
      'snapshot_changes',
      'Packages that differ from the previous snapshot; absent if it was not compared with one',
      () => {
        const counts = snapshots.current && changeCounts(snapshots.current.meta);
        return counts && CHANGES.map((change): Sample => [counts[change], change]);
      },
      'change',
    ),
    gauge(
      'changes_snapshots',
      'Snapshots that /changes can start from',
      () => meta()?.lineage?.ancestors.length,
    ),
  ];
}

/** Metrics of the rebuilds of this registry, on whatever replica, and of those that this process started. */
export function ofRebuilds(rebuilds: RebuildService): Collector[] {
  const ofState = (name: string, help: string, value: (state: RebuildState) => number | null | undefined) =>
    gauge(name, help, async () => value((await rebuilds.state()) ?? {}) ?? undefined);
  return [
    gauge(
      'rebuild_phase',
      'Phase of the running rebuild',
      async () => oneOf(PHASES, (await rebuilds.state())?.phase),
      'phase',
    ),
    ofState('rebuild_rows', 'Rows read or written by the running rebuild', ({ rows }) => rows),
    ofState('rebuild_rows_expected', 'Expected rows, once known', (state) => state.total_rows),
    ofState('rebuild_bytes', 'Bytes received, merged or copied by the running rebuild', ({ bytes }) => bytes),
    ofState('rebuild_bytes_expected', 'Approximate bytes to merge or copy', (state) => state.total_bytes),
    ofState('rebuild_memory_bytes', 'Resident memory of the rebuild process', (state) => state.memory_bytes),
    ofState('rebuild_cpu_seconds', 'CPU time of the rebuild process so far', (state) => state.cpu_seconds),
    counter('rebuilds_total', 'Rebuilds of this process, by outcome', () => rebuilds.counts, 'outcome'),
    ofState(
      'rebuild_last_success_timestamp_seconds',
      'When a rebuild of any replica or command last succeeded, with or without changes',
      ({ last_success_at: at }) => at && at / 1000,
    ),
    ofState(
      'rebuild_last_failure_timestamp_seconds',
      'When the last rebuild of any replica or command failed; absent after a success',
      ({ last_failure: failure }) => failure && failure.at / 1000,
    ),
  ];
}

/** 1 for the current state, and 0 for all others. */
function oneOf(states: readonly string[], current: string | undefined): Sample[] {
  return states.map((state) => [state === current ? 1 : 0, state]);
}

function toSeconds(time: string | undefined): number | undefined {
  return time === undefined ? undefined : Date.parse(time) / 1000;
}
