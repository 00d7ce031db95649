import * as z from 'zod';
import type { Operation } from '../http/openapi/document.js';
import { component } from '../http/openapi/components.js';
import { CHANGES } from '../snapshot/change-record.js';
import { NAME_RULES } from '../util/name-rule.js';
import { changeCounts } from '../snapshot/snapshot-meta.js';
import type { SnapshotWatcher } from '../snapshot/snapshot-watcher.js';
import { etagOf, matches } from '../http/response/etag.js';
import type { Handler } from '../http/request/request-context.js';
import { jsonResponse } from '../http/response/response.js';

export function statsOperation(slug: string): Operation {
  const total = totalOf(slug);
  return {
    id: 'getStats',
    tag: 'Service',
    summary: 'The number of packages, their registry, and the time of the snapshot',
    description: `The first member is \`${total}\`: its middle word is the short name of the registry.`,
    response: {
      description: 'The current snapshot.',
      schema: component('Stats', {
        [total]: z.int().nonnegative(),
        source: z.string(),
        note: z.string(),
        taken_at: z.iso.datetime(),
        has_weights: z.boolean().optional().meta({ description: 'Present if every package has a `weight`.' }),
        name_rule: z
          .enum(NAME_RULES)
          .exclude(['exact'])
          .optional()
          .meta({
            description:
              'How names are compared: by `lowercase`, case is ignored; by `crates`, `_` is also `-`; by `pypi` (PEP 503), so is a run ' +
              'of `-`, `_` and `.`. Without it, names are exact.',
          }),
      }),
      example: {
        [total]: 63666,
        source: 'tracker.debian.org',
        note: noteOf('2026-01-02T03:04:05.678Z'),
        taken_at: '2026-01-02T03:04:05.678Z',
      },
      headers: ['X-Snapshot', 'Last-Modified', 'X-Snapshot-Changes'],
    },
    problems: ['initializing', 'search_unavailable'],
  };
}

function totalOf(slug: string): string {
  return `total_${slug}_packages`;
}

/**
 * `GET /stats`. Caches revalidate the response each time, so they never serve the statistics of a replaced snapshot.
 * `If-Modified-Since` is ignored: after a rollback, `Last-Modified` is earlier than in the client's copy.
 */
export function stats(snapshots: SnapshotWatcher, slug: string): Handler {
  return ({ req }) => {
    const served = snapshots.served();
    const { id, index, meta } = served;
    const { total, source, taken_at, has_weights, name_rule } = meta;
    const etag = etagOf(index, 'stats');
    const counts = changeCounts(meta);
    const headers = {
      'Cache-Control': 'no-cache',
      ETag: etag,
      'X-Snapshot': id,
      'Last-Modified': new Date(taken_at).toUTCString(),
      ...(counts && { 'X-Snapshot-Changes': CHANGES.map((kind) => `${kind}=${counts[kind]}`).join(', ') }),
    };
    if (matches(req.headers['if-none-match'], etag)) return { status: 304, headers };
    const stats = {
      [totalOf(slug)]: total,
      source,
      note: noteOf(taken_at),
      taken_at,
      ...(has_weights && { has_weights }),
      ...(name_rule !== 'exact' && { name_rule }),
    };
    return jsonResponse(stats, headers);
  };
}

function noteOf(takenAt: string): string {
  return `The data is a snapshot that is updated periodically; this one was taken at ${takenAt}.`;
}
