/** How names match a query: they contain it, start with it, or equal it. */
export const MATCHES = ['contains', 'prefix', 'exact'] as const;

export type Match = (typeof MATCHES)[number];
