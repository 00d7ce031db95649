/** Searches every log line and every answer of a test run for the secrets that were used in it. */

interface Searched {
  logLines: number;
  answers: number;
}

const secrets = new Set<string>();
const searched: Searched = { logLines: 0, answers: 0 };
const found: string[] = [];

/** From now on `text` is looked for. */
export function keepSecret(text: string): string {
  secrets.add(text);
  return text;
}

/** @param except what this very text may hold: the token that an answer hands out. */
export function searchForSecrets(kind: keyof Searched, text: string, except?: string): void {
  searched[kind]++;
  for (const secret of secrets) {
    if (secret !== except && text.includes(secret)) found.push(`${kind}: ${text.slice(0, 500)}`);
  }
}

/** What was found, and how much was searched; no summary where nothing was. */
export function findLeaks(): { found: readonly string[]; summary: string | undefined } {
  const { logLines, answers } = searched;
  if (logLines + answers === 0) return { found, summary: undefined };
  const summary = `${secrets.size} secrets and tokens were searched for in ${logLines} log lines and ${answers} answers: ${found.length} found`;
  return { found, summary };
}
