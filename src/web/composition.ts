/**
 * Whether an input method is composing text: half words are searched for, as they may be whole ones, but not
 * announced, suggested for or kept in the history.
 */
export class Composition {
  isActive = false;

  constructor(private readonly input: HTMLInputElement) {
    input.addEventListener('compositionstart', () => (this.isActive = true));
    input.addEventListener('compositionend', () => (this.isActive = false));
  }

  /** Resolves when nothing is composed any more. @throws the signal's reason, if it is aborted. */
  async ended(signal: AbortSignal): Promise<void> {
    if (this.isActive)
      await new Promise((resolve) => this.input.addEventListener('compositionend', resolve, { once: true }));
    signal.throwIfAborted();
  }
}
