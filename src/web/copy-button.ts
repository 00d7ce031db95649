import { element, speak } from './dom.js';

/** How long a button shows what it has done, in milliseconds. */
const DONE_MS = 2000;

/** A button that copies a name; none where browsers have no clipboard, as on pages over http. */
export function copyButton(name: string): HTMLElement[] {
  if (!isSecureContext) return [];
  const unseen = element('bdi', { class: 'unseen' }, name);
  return [element('button', { type: 'button', class: 'copy' }, element('span', {}, 'Copy'), ' ', unseen)];
}

/** Copies the name whose button is pressed, and shows and says so. */
export function listenToCopyButtons(packages: HTMLElement): void {
  packages.addEventListener('click', ({ target }) => {
    const button = (target as Element).closest('.copy');
    if (button !== null) void copy(button);
  });
}

async function copy(button: Element): Promise<void> {
  const [label, name] = button.children as unknown as [HTMLElement, HTMLElement];
  const text = name.textContent;
  try {
    await navigator.clipboard.writeText(text);
    label.textContent = 'Copied';
    speak(`Copied ${text}`);
  } catch {
    // The user or the browser's policy denies it.
    label.textContent = 'Not copied';
    speak('The browser did not allow to copy.');
  }
  setTimeout(() => (label.textContent = 'Copy'), DONE_MS);
}
