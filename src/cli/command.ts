import { Generations } from '../catalog/generation.js';
import { createReadClient } from '../clients/elasticsearch.js';
import { createRedis } from '../clients/redis.js';
import { ConfigError, readConfig, type Config } from '../config.js';
import { createLogger } from '../log.js';
import { createBuilder, type Builder } from '../rebuild/builder.js';
import { aliasOf } from '../rebuild/index-names.js';
import { LockUnavailable } from '../rebuild/lock.js';
import type { ProgressReport } from '../rebuild/progress.js';

/** How a command ends, for scripts. */
export const EXIT = { done: 0, failed: 1, misused: 2, busy: 3, stopped: 130 } as const;
export type Exit = (typeof EXIT)[keyof typeof EXIT];

/** The command was called in a way that it does not understand; the message is one line. */
export class Misuse extends Error {
  override readonly name = 'Misuse';
}

interface CommandOptions {
  env: NodeJS.ProcessEnv;
  onRebuild?: (report: ProgressReport) => void;
}

/** What a command works with. */
export interface Workplace extends Builder {
  config: Config;
  alias: string;
}

/**
 * Runs a command with the configuration, the lock and the rights of the server's rebuilds, and sets the exit code. On
 * SIGINT and SIGTERM a running rebuild is stopped and cleans up.
 */
export async function runCommand(
  { env, onRebuild }: CommandOptions,
  command: (workplace: Workplace) => Promise<Exit>,
): Promise<void> {
  try {
    const config = readConfig(env);
    // What fails is said by the command in one line.
    const log = createLogger(config.logLevel === 'info' ? 'fatal' : config.logLevel, process.stdout.isTTY);
    const redis = config.redisUrl === undefined ? undefined : await createRedis(config.redisUrl, log);
    const { nodes, apiKey } = config.elasticsearch;
    const reader = createReadClient({ nodes, apiKey });
    const alias = aliasOf(config.registry.slug);
    const generations = new Generations(reader, alias, log);
    const builder = createBuilder({ config, log, redis, generations, onRebuild });
    const stop = () => void builder.rebuilds.stop();
    process.once('SIGINT', stop);
    process.once('SIGTERM', stop);
    try {
      await generations.refresh();
      if (generations.engine === 'unreachable') {
        throw new Error(
          'Elasticsearch does not answer at ELASTICSEARCH_URL, or has something else under our alias',
        );
      }
      process.exitCode = await command({ ...builder, config, alias });
    } finally {
      process.off('SIGINT', stop);
      process.off('SIGTERM', stop);
      await Promise.all([builder.close(), reader.close()]);
      redis?.disconnect();
    }
  } catch (error) {
    const misused = error instanceof Misuse || error instanceof ConfigError;
    process.exitCode = misused ? EXIT.misused : EXIT.failed;
    const reason = (error as Error).message;
    console.error(
      error instanceof LockUnavailable ? `${reason}: it tells whether another rebuild is running` : reason,
    );
  }
}
