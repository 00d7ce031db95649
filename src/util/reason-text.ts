/**
 * Maximum length of a failure reason, in UTF-16 code units; longer ones are truncated. Reasons are part of `/rebuild`
 * and the log, so their size must not depend on the dataset.
 */
export const MAX_REASON_LENGTH = 300;

/**
 * Maximum length of a value quoted from the dataset, in UTF-16 code units. Two of them, a line number and the text of
 * any rule fit into a reason, so that truncation never hides the line or the rule.
 */
const MAX_QUOTED_LENGTH = 64;

const ELLIPSIS = '…';

/** Truncates `text` to `MAX_REASON_LENGTH` without splitting a surrogate pair. */
export function truncateReason(text: string): string {
  if (text.length <= MAX_REASON_LENGTH) return text;
  const kept = text.slice(0, MAX_REASON_LENGTH - ELLIPSIS.length).replace(/[\ud800-\udbff]$/, '');
  return kept + ELLIPSIS;
}

/** Characters that JSON does not escape, and that are invisible or look like a space. */
const INVISIBLE = /[\p{Cf}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u;

/**
 * Quotes a value of the dataset as JSON does, and escapes invisible characters. A long value is cut after a whole
 * character and followed by an ellipsis.
 */
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
  // Without the flag `u`, the pattern matches code units, as JSON escapes them.
  return char.replace(/./gs, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
