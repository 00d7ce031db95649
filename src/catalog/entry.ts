/** A package as the API answers it, without `rank`. */
export interface PackageEntry {
  no: number;
  name: string;
  version: string;
  url: string;
}

/** The entry's JSON, its members in the order of the contract: what the index keeps and the API splices into answers. */
export function entryJson({ no, name, version, url }: PackageEntry): string {
  return JSON.stringify({ no, name, version, url });
}
