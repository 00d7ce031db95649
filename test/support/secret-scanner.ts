/** Searches every log line and every response of a test run for the secrets it used. */

interface Searched {
  logLines: number;
  answers: number;
}

const secrets = new Set<string>();
const searched: Searched = { logLines: 0, answers: 0 };
const found: string[] = [];

/** Registers a secret to search for from now on. */
export function keepSecret(text: string): string {
  secrets.add(text);
  return text;
}

/** @param except a secret that this text may contain: the token that the response hands out. */
export function searchForSecrets(kind: keyof Searched, text: string, except?: string): void {
  searched[kind]++;
  for (const secret of secrets) {
    if (secret !== except && text.includes(secret)) found.push(`${kind}: ${text.slice(0, 500)}`);
  }
}

/** The leaks, and a summary of the search; undefined if nothing was searched. */
export function findLeaks(): { found: readonly string[]; summary: string | undefined } {
  const { logLines, answers } = searched;
  if (logLines + answers === 0) return { found, summary: undefined };
  const summary = `Searched ${logLines} log lines and ${answers} responses for ${secrets.size} secrets and tokens: ${found.length} found`;
  return { found, summary };
}
