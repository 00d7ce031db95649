import { totals } from './totals.js';

/** Searches every log line and every response of a test run for the secrets it used. */

const secrets = new Set<string>();
const found: string[] = [];

/** Registers a secret to search for from now on. */
export function keepSecret(text: string): string {
  secrets.add(text);
  return text;
}

/** @param except a secret that this text may contain: the token that the response hands out. */
export function searchForSecrets(kind: 'logLines' | 'responses', text: string, except?: string): void {
  totals[kind]++;
  for (const secret of secrets) {
    if (secret !== except && text.includes(secret)) found.push(`${kind}: ${text.slice(0, 500)}`);
  }
}

/** The texts with a secret since the last call. */
export function findLeaks(): string[] {
  return found.splice(0);
}
