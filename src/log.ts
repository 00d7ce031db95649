import { pino, symbols, type DestinationStream, type Logger } from 'pino';
import pretty from 'pino-pretty';
import { createRedactor, type Redact } from './redact.js';

export type { Logger };

/** How many objects, and causes of errors, may be written within one another. */
const MAX_DEPTH = 6;

/** Of the errors that an `AggregateError` holds: one for each address that was tried. */
const MAX_ERRORS = 10;

/** What is known of an error in the log. */
interface LoggedError {
  /** The name of its class. */
  type: string;
  message: string;
  code?: string | number;
  /** Of an HTTP response. */
  statusCode?: number;
  stack?: string;
  /** A logged error, or for any other value its type. */
  cause?: unknown;
  errors?: unknown[];
}

type Fields = Record<string, unknown>;

interface LogOptions {
  /** What must not be in the log, in any form in which it may appear. */
  secrets?: readonly string[];
  /** Where lines go instead of standard output. */
  destination?: DestinationStream;
}

/**
 * Writes JSON lines to standard output, or readable ones where that is a terminal. Secrets are replaced in all texts. Of an
 * error, at any depth, only some fields are written: libraries attach requests, commands and connections to their errors,
 * with the credentials that were sent.
 */
export function createLogger(
  level: string,
  terminal: boolean,
  { secrets = [], destination }: LogOptions = {},
): Logger {
  const redact = createRedactor(secrets);
  const options = {
    level,
    formatters: { log: (fields: object) => loggable(fields, redact) as Fields },
    // The default one would add all fields of an error again.
    serializers: { err: (error: unknown) => error, msg: redact },
  };
  if (destination !== undefined) return pino(options, destination);
  return terminal
    ? pino(options, pretty({ sync: true, translateTime: 'HH:MM:ss', ignore: 'pid,hostname' }))
    : pino(options);
}

/** Writes a line of JSON that another process has logged, at its own level, to where this log is written. */
export function forwardLine(log: Logger, line: string): void {
  (log as unknown as Record<symbol, DestinationStream>)[symbols.streamSym]?.write(line);
}

/** What may be written of a value. @param within the objects that it is a part of, outermost first. */
function loggable(value: unknown, redact: Redact, within: readonly object[] = []): unknown {
  if (typeof value === 'string') return redact(value);
  if (typeof value !== 'object' || value === null) return value;
  if (within.length > MAX_DEPTH || within.includes(value)) return '[circular or too deep]';
  const part = (one: unknown) => loggable(one, redact, [...within, value]);
  if (value instanceof Error) return loggableError(value, redact, part);
  if (Array.isArray(value)) return value.map(part);
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, part(field)]));
}

function loggableError(error: Error, redact: Redact, part: (value: unknown) => unknown): LoggedError {
  const { name, message, stack, cause, code, statusCode, errors } = error as ErrorFields;
  // What is thrown and is no error may be a request as well.
  const nested = (value: unknown) => part(value instanceof Error ? value : typeof value);
  return {
    type: name,
    message: redact(message),
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    ...(typeof statusCode === 'number' ? { statusCode } : {}),
    ...(typeof stack === 'string' ? { stack: redact(stack) } : {}),
    ...(cause === undefined ? {} : { cause: nested(cause) }),
    ...(Array.isArray(errors) ? { errors: errors.slice(0, MAX_ERRORS).map(nested) } : {}),
  };
}

/** Fields that errors of Node and of the clients may have. */
type ErrorFields = Error & { code?: unknown; statusCode?: unknown; errors?: unknown };
