import { readFileSync } from 'node:fs';

/**
 * Number of open files that a replica may need besides client connections: for Elasticsearch, Redis, a rebuild, exports
 * and the program itself.
 */
const OTHERS = 200;

/**
 * Compares the limit of open files with the maximum number of connections, each of which is an open file.
 * @param limits the path of the file with this process's limits. Only Linux has this file.
 * @returns a description if the limit is too low; otherwise undefined.
 */
export function describeOpenFiles(maxConnections: number, limits = '/proc/self/limits'): string | undefined {
  let text: string;
  try {
    text = readFileSync(limits, 'utf8');
  } catch {
    return undefined; // Not Linux.
  }
  const [, limit] = /^Max open files +(\d+)/m.exec(text) ?? [];
  if (limit === undefined || Number(limit) >= maxConnections + OTHERS) return undefined;
  return `MAX_CONNECTIONS is ${maxConnections}, but this process may have only ${limit} open files: raise that limit (ulimit -n) to ${maxConnections + OTHERS}, or lower MAX_CONNECTIONS`;
}
