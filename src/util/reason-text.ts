/**
 * Maximum length of a failure reason, in UTF-16 code units. Longer reasons are truncated. Reasons are part of
 * `/rebuild` and the log, so their size must not depend on the dataset.
 */
const MAX_REASON_LENGTH = 300;

/**
 * Maximum length of a value quoted from the dataset, in UTF-16 code units. Two quoted values, a line number and any
 * message of a check fit into a reason. Truncation therefore never hides the line number or the message.
 */
const MAX_QUOTED_LENGTH = 64;

const ELLIPSIS = '…';

/** Does not split a surrogate pair. */
export function truncateReason(text: string): string {
  if (text.length <= MAX_REASON_LENGTH) return text;
  const kept = text.slice(0, MAX_REASON_LENGTH - ELLIPSIS.length).replace(/[\ud800-\udbff]$/, '');
  return kept + ELLIPSIS;
}

/** Characters that JSON does not escape, and that are invisible or look like a space. */
const INVISIBLE = /[\p{Cf}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u;

/** As JSON, with invisible characters escaped. A long value is cut after a whole character. */
export function quote(value: string): string {
  let quoted = '';
  for (const char of value) {
    const escaped = INVISIBLE.test(char) ? escapeOf(char) : JSON.stringify(char).slice(1, -1);
    if (quoted.length + escaped.length > MAX_QUOTED_LENGTH) return `"${quoted}"${ELLIPSIS}`;
    quoted += escaped;
  }
  return `"${quoted}"`;
}

function escapeOf(char: string): string {
  // Without the flag `u`, `.` matches one code unit. JSON also escapes code units.
  return char.replace(/./gs, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** If a host has several addresses, a failed connection is an `AggregateError` with an empty message. */
export function messageOf(error: Error): string {
  const parts = error instanceof AggregateError ? (error.errors as Error[]) : [error];
  return [...new Set(parts.map(({ message }) => message))].join('; ');
}
