/** The Unicode code points of a text, each as a string. The API counts code points as characters. */
export function codePoints(text: string): string[] {
  return Array.from(text);
}

const WHITE_SPACE = /^\p{White_Space}$/u;

/**
 * Trims characters with the Unicode property White_Space. `String.prototype.trim` differs: it removes U+FEFF and keeps
 * U+0085. The time is linear in the length of the text, unlike with a regular expression that ends in `+$`.
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
