/**
 * The message of an error. If a host has several addresses, a failed connection is an `AggregateError` with an empty
 * message. The messages of its errors are joined.
 * @param describe returns the text of one error.
 */
export function messageOf(error: Error, describe = ({ message }: Error): string => message): string {
  const parts = error instanceof AggregateError ? (error.errors as Error[]) : [error];
  return [...new Set(parts.map((part) => describe(part)))].join('; ');
}
