import { element, speak } from './dom.js';

/** Time for which a button shows its result, in milliseconds. */
const DONE_MS = 2000;

/**
 * A button that copies a name. Empty in an insecure context, such as a page over HTTP from another host, where browsers
 * have no clipboard.
 */
export function copyButton(name: string): HTMLElement[] {
  if (!isSecureContext) return [];
  const label = element('span', {}, 'Copy');
  const unseen = element('bdi', { class: 'unseen', translate: 'no' }, name);
  const button = element('button', { type: 'button', class: 'copy' }, label, ' ', unseen);
  button.addEventListener('click', () => void copy(name, label));
  return [button];
}

/** Copies the name that the service sent, because the shown text may be translated. Shows and announces the result. */
async function copy(name: string, label: HTMLElement): Promise<void> {
  try {
    await navigator.clipboard.writeText(name);
    label.textContent = 'Copied';
    speak('Copied ', element('bdi', { translate: 'no' }, name));
  } catch {
    // The user or a policy of the browser denied access to the clipboard.
    label.textContent = 'Not copied';
    speak('The browser did not allow to copy.');
  }
  setTimeout(() => (label.textContent = 'Copy'), DONE_MS);
}
