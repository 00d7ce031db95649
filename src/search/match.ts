/** How names match a query: they contain it, start with it, equal it, or contain each of its words. */
export const MATCHES = ['contains', 'prefix', 'exact', 'words'] as const;

export type Match = (typeof MATCHES)[number];
