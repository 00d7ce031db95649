/**
 * The message of an error. An AggregateError (host with several addresses) has an empty message, so its parts are
 * joined.
 * @param describe returns the text of one error.
 */
export function messageOf(error: Error, describe = ({ message }: Error): string => message): string {
  const parts = error instanceof AggregateError ? (error.errors as Error[]) : [error];
  return [...new Set(parts.map((part) => describe(part)))].join('; ');
}
