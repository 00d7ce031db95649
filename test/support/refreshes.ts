import type { Service } from './service.js';
import { waitFor } from './wait-for.js';

/** Waits until this many further refreshes of a replica have built nothing. */
export async function refreshes({ outcomes }: Service, count: number): Promise<void> {
  const before = outcomes().unchanged;
  await waitFor(() => outcomes().unchanged >= before + count, 'refreshes without a build', 60_000);
}
