/** If a host has several addresses, a failed connection is an `AggregateError` with an empty message. */
export function messageOf(error: Error): string {
  const parts = error instanceof AggregateError ? (error.errors as Error[]) : [error];
  return [...new Set(parts.map(({ message }) => message))].join('; ');
}
