/** A text in which all secrets are replaced. */
export type Redact = (text: string) => string;

const REDACTED = '[redacted]';

/**
 * A shorter secret is not looked for: it would be found within ordinary words, and what is missing in these would tell it.
 * Errors are logged without the fields that hold it, and URLs without their user information, whatever its length.
 */
const MIN_LENGTH = 4;

/**
 * The user information of a URL, also of one that is not configured here, such as that of a redirection. No scheme is
 * longer than the bound, which keeps the search linear.
 */
const USER_INFORMATION = /\b([a-z][a-z\d+.-]{0,15}:\/\/)[^\s/?#]*@/gi;

/** Makes the function that replaces these secrets, and the user information of all URLs, by `[redacted]`. */
export function createRedactor(secrets: readonly string[]): Redact {
  // The longest first, as one may be a part of another.
  const known = secrets.filter(({ length }) => length >= MIN_LENGTH).sort((a, b) => b.length - a.length);
  return (text) => {
    const redacted = known.reduce((rest, secret) => rest.replaceAll(secret, REDACTED), text);
    return redacted.replace(USER_INFORMATION, `$1${REDACTED}@`);
  };
}
