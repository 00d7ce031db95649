/** How names match a query: those that contain it, that start with it, or that equal it. */
export const MATCHES = ['contains', 'prefix', 'exact'] as const;

export type Match = (typeof MATCHES)[number];
