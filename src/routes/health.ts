import type { Generations } from '../catalog/generation.js';
import type { Handler } from './handler.js';

const RETRY_AFTER_SECONDS = '2';

/**
 * `GET /health`: whether searches can be answered. 503 keeps this shape: `initializing` without a complete index,
 * `unavailable` while Elasticsearch does not answer.
 */
export function health(generations: Generations): Handler {
  return (ctx) => {
    const { current, engine } = generations;
    const status = engine === 'present' ? 'ok' : engine === 'absent' ? 'initializing' : 'unavailable';
    if (status !== 'ok') {
      ctx.status = 503;
      ctx.set('Retry-After', RETRY_AFTER_SECONDS);
    }
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { status, total_packages: current?.meta.total ?? 0 };
  };
}
