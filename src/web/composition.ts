/**
 * Whether an input method is composing text. Unfinished text is searched, because it may already be a complete name.
 * Until the composition ends, nothing is announced or stored in the history, and no suggestions are requested.
 */
export class Composition {
  isActive = false;

  constructor(private readonly input: HTMLInputElement) {
    input.addEventListener('compositionstart', () => (this.isActive = true));
    input.addEventListener('compositionend', () => (this.isActive = false));
  }

  /**
   * Resolves when the composition ends, or at once if there is none.
   * @throws the signal's reason, if the signal has been aborted by then. Aborting does not shorten the wait.
   */
  async ended(signal: AbortSignal): Promise<void> {
    if (this.isActive)
      await new Promise((resolve) => this.input.addEventListener('compositionend', resolve, { once: true }));
    signal.throwIfAborted();
  }
}
