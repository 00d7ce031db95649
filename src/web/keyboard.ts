import { packageLinks } from './results.js';

/**
 * Keyboard control. `/` focuses the search box if nothing has the focus (WCAG 2.1.4). The arrow keys move between the
 * box and the packages. Escape clears the box if the box has the focus, and otherwise focuses the box. Enter in the box
 * submits the form, which focuses the first package.
 * @param clear empties the box and shows the page without a query.
 */
export function listenToKeys(input: HTMLInputElement, clear: () => void): void {
  document.addEventListener('keydown', (event) => {
    const { key, target } = event;
    // Ignores keys of input methods, browser shortcuts, and keys with Shift, because Shift selects text. `/` is handled
    // with Shift, because some keyboards require Shift for `/`.
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.shiftKey && key !== '/') return;
    const links = packageLinks();
    const place = links.indexOf(target as HTMLElement);
    if (key === '/' && document.activeElement === document.body) input.select();
    else if (key === 'ArrowDown' && (place !== -1 || target === input)) links[place + 1]?.focus();
    else if (key === 'ArrowUp' && place !== -1) (links[place - 1] ?? input).focus();
    else if (key === 'Escape' && target === input) clear();
    else if (key === 'Escape') input.focus();
    else return;
    event.preventDefault();
  });
}
