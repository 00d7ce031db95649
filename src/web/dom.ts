type Child = Node | string;

/**
 * The element with this id.
 * @param type such as `HTMLInputElement`.
 * @throws {Error} if the page has no such element of this type.
 */
export function byId<T extends HTMLElement>(id: string, type: new () => T): T;
export function byId(id: string): HTMLElement;
export function byId(id: string, type: new () => HTMLElement = HTMLElement): HTMLElement {
  const found = document.getElementById(id);
  if (found instanceof type) return found;
  throw new Error(`the page has no ${type.name} #${id}`);
}

/** Creates an element. Texts are never parsed as HTML. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Lets screen readers announce a change that is visible elsewhere on the page. */
export function speak(...text: Child[]): void {
  byId('announcement').replaceChildren(...text);
}
