/**
 * Keyboard control. `/` focuses the search box if nothing has the focus (WCAG 2.1.4). The arrow keys move between the
 * box and the packages. Escape clears the box if the box has the focus, and otherwise focuses the box. Enter in the box
 * submits the form, which focuses the first package.
 * @param clear empties the box and shows the page without a query.
 */
export function listenToKeys(input: HTMLInputElement, packages: HTMLElement, clear: () => void): void {
  const links = () => [...packages.querySelectorAll<HTMLAnchorElement>('.packages a')];
  /** The index of the package whose link or button is `target`; -1 if there is none. */
  const placeIn = (all: HTMLAnchorElement[], target: EventTarget | null) =>
    all.findIndex((link) => link.parentElement?.contains(target as Node));
  const keys: Record<string, (event: KeyboardEvent) => boolean> = {
    '/': () => {
      if (document.activeElement !== document.body) return false;
      input.focus();
      input.select();
      return true;
    },
    ArrowDown: ({ target }) => {
      const all = links();
      const place = placeIn(all, target);
      if (target !== input && place === -1) return false;
      all[place + 1]?.focus();
      return true;
    },
    ArrowUp: ({ target }) => {
      const all = links();
      const place = placeIn(all, target);
      if (place === -1) return false;
      (all[place - 1] ?? input).focus();
      return true;
    },
    Escape: ({ target }) => {
      if (target === input) clear();
      else input.focus();
      return true;
    },
  };
  document.addEventListener('keydown', (event) => {
    // Ignores keys of input methods, browser shortcuts, and keys with Shift, because Shift selects text. `/` is handled
    // with Shift, because some keyboards require Shift for `/`.
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.shiftKey && event.key !== '/') return;
    if (keys[event.key]?.(event) === true) event.preventDefault();
  });
}
