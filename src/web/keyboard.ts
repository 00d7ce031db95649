/**
 * Lets the page be used without a mouse: `/` goes to the search box, the arrows from there through the packages, Escape
 * back to the box, and, there, empties it. Enter is the browser's own on a package, and goes to the first one from the box.
 * @param clear empties the box and shows what there is without a query.
 */
export function listenToKeys(input: HTMLInputElement, packages: HTMLElement, clear: () => void): void {
  const links = () => [...packages.querySelectorAll<HTMLAnchorElement>('.packages a')];
  const keys: Record<string, (event: KeyboardEvent) => boolean> = {
    '/': ({ target }) => {
      if (target instanceof HTMLInputElement) return false;
      input.focus();
      input.select();
      return true;
    },
    ArrowDown: ({ target }) => {
      const all = links();
      const next = all[all.indexOf(target as HTMLAnchorElement) + 1];
      if (target !== input && !all.includes(target as HTMLAnchorElement)) return false;
      next?.focus();
      return true;
    },
    ArrowUp: ({ target }) => {
      const all = links();
      const place = all.indexOf(target as HTMLAnchorElement);
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
    // What comes from an input method is not for the page, nor are the browser's own shortcuts.
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (keys[event.key]?.(event) === true) event.preventDefault();
  });
}
