import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { useFastStartingJvm, provideEngines, stopEngines } from './engines.js';

/**
 * `tsx test/support/with-engines.ts COMMAND …`: runs a command with ELASTICSEARCH_URL and REDIS_URL, so that several
 * runs of mocha share one Elasticsearch and one Redis. Exits as the command does.
 */

const [command = '', ...args] = process.argv.slice(2);
useFastStartingJvm();
await provideEngines();
const child = spawn(command, args, { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal));
const [code] = (await once(child, 'exit').finally(stopEngines)) as [number | null];
process.exit(code ?? 1);
