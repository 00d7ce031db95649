import { pino, type DestinationStream, type Logger } from 'pino';
import { createRedactor, type Redact } from './redact.js';

export type { Logger };

/** Maximum nesting of logged objects and error causes. */
const MAX_DEPTH = 6;

/** Maximum number of logged errors of an `AggregateError`. Node creates one error for each address that it tried. */
const MAX_ERRORS = 10;

/** Maximum total size of the lines that could not be written yet, in bytes. Further lines are dropped. */
const MAX_UNWRITTEN = 2 ** 20;

interface LogOptions {
  /** Texts to redact, in every form in which they may appear. */
  secrets?: readonly string[];
  /** Replaces standard output. */
  destination?: DestinationStream | undefined;
}

/**
 * Logs JSON lines to standard output. Secrets are redacted in all texts. Only some fields of errors are logged, at any
 * depth, because libraries attach requests, commands and connections with credentials to their errors.
 */
export function createLogger(
  level: string,
  { secrets = [], destination = standardOutput() }: LogOptions = {},
): Logger {
  const redact = createRedactor(secrets);
  const options = {
    level,
    formatters: { log: (fields: object) => loggable(fields, redact) as Record<string, unknown> },
    // The default serializer would replace the type of an error by `Object`, and join the messages of its causes.
    serializers: { err: (error: unknown) => error, msg: redact },
  };
  return pino(options, destination);
}

export async function terminalOutput(): Promise<DestinationStream | undefined> {
  if (!process.stdout.isTTY) return undefined;
  // Loaded only here, because programs without a terminal, such as rebuild processes, start sooner without it.
  const { default: pretty } = await import('pino-pretty');
  return pretty({ sync: true, translateTime: 'HH:MM:ss', ignore: 'pid,hostname' });
}

/**
 * Writes synchronously, because buffered lines that cannot be written would keep the process alive. A stalled reader of
 * a pipe must not block this process. A line that the pipe does not accept is therefore written together with the next
 * line.
 */
function standardOutput(): DestinationStream {
  const output = pino.destination({
    dest: 1,
    sync: true,
    maxLength: MAX_UNWRITTEN,
    retryEAGAIN: () => false,
  });
  // It is better to serve without a log.
  output.on('error', () => undefined);
  return output;
}

/** The loggable part of a value. @param within the objects that contain it, outermost first. */
function loggable(value: unknown, redact: Redact, within: readonly object[] = []): unknown {
  if (typeof value === 'string') return redact(value);
  if (typeof value !== 'object' || value === null) return value;
  if (within.length > MAX_DEPTH || within.includes(value)) return '[circular or too deep]';
  const part = (one: unknown) => loggable(one, redact, [...within, value]);
  if (value instanceof Error) return loggableError(value, redact, part);
  if (Array.isArray(value)) return value.map(part);
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, part(field)]));
}

function loggableError(error: Error, redact: Redact, part: (value: unknown) => unknown) {
  const { name, message, stack, cause, code, statusCode, errors } = error as ErrorFields;
  // If a nested value is not an error, only its type is logged, because the value may be a whole request.
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

/** Fields that errors of Node and of the Elasticsearch and Redis clients may have. */
type ErrorFields = Error & { code?: unknown; statusCode?: unknown; errors?: unknown };
