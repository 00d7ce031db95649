/**
 * The message of an error. That of a host with several addresses is empty: its parts, one for each address, have messages.
 * @param describe returns the text of one error.
 */
export function messageOf(error: Error, describe = ({ message }: Error): string => message): string {
  const parts = error instanceof AggregateError ? (error.errors as Error[]) : [error];
  return [...new Set(parts.map((part) => describe(part)))].join('; ');
}
