/**
 * Whether an input method is composing text. Incomplete words are searched, because they may be complete names, but
 * they are not announced, not stored in the history, and get no suggestions.
 */
export class Composition {
  isActive = false;

  constructor(private readonly input: HTMLInputElement) {
    input.addEventListener('compositionstart', () => (this.isActive = true));
    input.addEventListener('compositionend', () => (this.isActive = false));
  }

  /**
   * Resolves when nothing is composed any more.
   * @throws the signal's reason, if it was aborted by then. Aborting does not end the wait.
   */
  async ended(signal: AbortSignal): Promise<void> {
    if (this.isActive)
      await new Promise((resolve) => this.input.addEventListener('compositionend', resolve, { once: true }));
    signal.throwIfAborted();
  }
}
