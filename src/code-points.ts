/** The Unicode code points of a text, each as a text: what the contract counts as characters. */
export function codePoints(text: string): string[] {
  return Array.from(text);
}
