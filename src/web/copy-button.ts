import { element, speak } from './dom.js';

/** How long a button shows what it has done, in milliseconds. */
const DONE_MS = 2000;

/** A button that copies a name; none where browsers have no clipboard, as on pages over http. */
export function copyButton(name: string): HTMLElement[] {
  if (!isSecureContext) return [];
  const label = element('span', {}, 'Copy');
  const unseen = element('bdi', { class: 'unseen', translate: 'no' }, name);
  const button = element('button', { type: 'button', class: 'copy' }, label, ' ', unseen);
  button.addEventListener('click', () => void copy(name, label));
  return [button];
}

/** Copies the name as the service sent it: what the page shows may be translated. Shows and says so. */
async function copy(name: string, label: HTMLElement): Promise<void> {
  try {
    await navigator.clipboard.writeText(name);
    label.textContent = 'Copied';
    speak('Copied ', element('bdi', { translate: 'no' }, name));
  } catch {
    // The user or the browser's policy denies it.
    label.textContent = 'Not copied';
    speak('The browser did not allow to copy.');
  }
  setTimeout(() => (label.textContent = 'Copy'), DONE_MS);
}
