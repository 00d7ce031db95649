import { CHANGES } from '../snapshot/change-record.js';
import { builtAt } from '../snapshot/index-names.js';
import { changeCounts } from '../snapshot/snapshot-meta.js';
import { SNAPSHOT_STATES, type SnapshotWatcher } from '../snapshot/snapshot-watcher.js';
import { PHASES } from '../rebuild/process/progress.js';
import type { RebuildService } from '../rebuild/process/rebuild-service.js';
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
    gauge(
      'dataset_info',
      'Format of the dataset that is served',
      () => {
        const format = meta()?.built_from.format;
        return format === undefined ? undefined : { [format]: 1 };
      },
      'format',
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

/** Metrics of the rebuilds that this process started, and the result of the last rebuild by any replica or command. */
export function ofRebuilds(rebuilds: RebuildService): Collector[] {
  const progress = () => rebuilds.progress;
  return [
    gauge(
      'rebuild_phase',
      'Phase of the rebuild that this process runs',
      () => oneOf(PHASES, progress()?.phase),
      'phase',
    ),
    gauge('rebuild_rows', 'Rows read or written by the running rebuild', () => progress()?.rows),
    gauge(
      'rebuild_rows_expected',
      'Expected rows of the running rebuild, once known',
      () => progress()?.total,
    ),
    gauge(
      'rebuild_bytes',
      'Bytes received, merged or copied by the running rebuild',
      () => progress()?.bytes,
    ),
    gauge('rebuild_bytes_expected', 'Approximate bytes to merge or copy', () => progress()?.totalBytes),
    gauge(
      'rebuild_memory_bytes',
      'Resident memory of the rebuild process',
      () => rebuilds.usage?.memoryBytes,
    ),
    gauge('rebuild_cpu_seconds', 'CPU time of the rebuild process so far', () => rebuilds.usage?.cpuSeconds),
    counter('rebuilds_total', 'Rebuilds of this process, by outcome', () => rebuilds.counts, 'outcome'),
    gauge(
      'rebuild_duration_seconds',
      'Duration of the last rebuild of this process that built an index',
      () => rebuilds.lastSuccess?.seconds,
    ),
    gauge(
      'rebuild_last_success_timestamp_seconds',
      'When a rebuild of any replica or command last succeeded, with or without changes',
      async () => toSeconds((await rebuilds.lastOutcome()).succeededAt),
    ),
    gauge(
      'rebuild_last_failure_timestamp_seconds',
      'When the last rebuild of any replica or command failed, and the kind of its reason; absent after a success',
      async () => {
        const { failure } = await rebuilds.lastOutcome();
        return failure && { [failure.kind]: Date.parse(failure.at) / 1000 };
      },
      'reason',
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
