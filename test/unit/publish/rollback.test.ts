import { rejects } from 'node:assert/strict';
import { rollBack } from '../../../src/publish/rollback.js';
import { errorResponse, interceptedClient } from '../../support/intercepted-client.js';
import { metaWith } from '../../support/snapshot-meta.js';
import { STEP } from '../../support/step.js';

const [OLD, NEW] = ['packages-20260101t000000z-00000000', 'packages-20260102t000000z-00000000'] as const;
const mappings = { _meta: metaWith(1) };
const settings = { index: { creation_date: '1' } };
const closed = { index: { creation_date: '1', verified_before_close: 'true' } };

describe('rollBack', () => {
  // prettier-ignore
  for (const [what, current, previous, message] of [
    ['nothing is served', undefined, undefined, 'no snapshot is served yet'],
    ['there is no previous snapshot', { mappings, settings }, undefined, `there is no snapshot before ${NEW}`],
    ['another version wrote it', { mappings, settings }, { settings }, `${OLD} was written by another version of the service: deploy that version first`],
    ['it is closed', { mappings, settings }, { mappings, settings: closed }, `${OLD} is closed: open it first`],
    ['the lock is lost', { mappings, settings }, { mappings, settings }, 'the lock was lost'],
  ] as const) {
    it(`fails if ${what}`, () => {
      const client = interceptedClient(({ method, path }) => {
        if (method === 'POST') return {};
        const found = path.endsWith('-previous') ? previous && { [OLD]: previous } : current && { [NEW]: current };
        return found ?? Promise.reject(errorResponse(404, 'index_not_found_exception'));
      });
      const signal = AbortSignal.abort(new Error('the lock was lost'));
      return rejects(rollBack(client, 'packages', { ...STEP, signal }), { message });
    });
  }
});
