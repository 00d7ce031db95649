/** The addresses of Elasticsearch, and the API key. Without a key, the credentials in the addresses apply. */
export interface ElasticsearchAccess {
  nodes: readonly string[];
  apiKey: string | undefined;
}

/** The user and the password in an address, decoded; undefined if it has no user. */
export function credentialsIn(address: string): { username: string; password: string } | undefined {
  const { username, password } = new URL(address);
  if (username === '') return undefined;
  return { username: decodeURIComponent(username), password: decodeURIComponent(password) };
}
