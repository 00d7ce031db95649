/** The Unicode code points of a text, each as a text: what the contract counts as characters. */
export function codePoints(text: string): string[] {
  return Array.from(text);
}

const WHITE_SPACE = /^\p{White_Space}$/u;

/**
 * A text without the characters at both ends that Unicode calls White_Space. `String.prototype.trim` differs: it removes
 * U+FEFF and keeps U+0085. Linear in the length of the text, which a regular expression with `+$` is not.
 */
export function trimWhiteSpace(text: string): string {
  // All of these characters have one code unit each.
  const isWhiteSpace = (index: number) => WHITE_SPACE.test(text.charAt(index));
  let start = 0;
  while (isWhiteSpace(start)) start++;
  let end = text.length;
  while (end > start && isWhiteSpace(end - 1)) end--;
  return text.slice(start, end);
}
