export type Redact = (text: string) => string;

const REDACTED = '[redacted]';

/**
 * Minimum length of a redacted secret. Shorter secrets occur in ordinary words, where `[redacted]` would reveal them.
 * Regardless of length, errors are logged without the fields that contain secrets, and URLs without their user
 * information.
 */
const MIN_LENGTH = 4;

/**
 * The user information of any URL, including URLs that are not configured, such as redirect targets. The scheme has a
 * maximum length, which keeps matching linear in the length of the text.
 */
const USER_INFORMATION = /\b([a-z][a-z\d+.-]{0,15}:\/\/)[^\s/?#]*@/gi;

export function createRedactor(secrets: readonly string[]): Redact {
  // Longest first, because one secret may contain another.
  const known = secrets.filter(({ length }) => length >= MIN_LENGTH).sort((a, b) => b.length - a.length);
  return (text) => {
    const redacted = known.reduce((rest, secret) => rest.replaceAll(secret, REDACTED), text);
    return redacted.replace(USER_INFORMATION, `$1${REDACTED}@`);
  };
}
