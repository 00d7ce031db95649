import { pino, type Logger } from 'pino';
import pretty from 'pino-pretty';

export type { Logger };

/** Writes JSON lines to standard output, or readable ones where that is a terminal. */
export function createLogger(level: string, terminal: boolean): Logger {
  return terminal
    ? pino({ level }, pretty({ sync: true, translateTime: 'HH:MM:ss', ignore: 'pid,hostname' }))
    : pino({ level });
}
