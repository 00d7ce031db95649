import { byId, element } from './dom.js';

/** The place of the package that gets the focus as soon as it is shown; -1 if there is none. */
let awaited = -1;

/** Whether a response is awaited. */
export function isBusy(): boolean {
  return byId('packages').ariaBusy === 'true';
}

/** Called when another view is about to be requested, before the debounce. */
export function markBusy(): void {
  awaited = -1;
  announce('');
  byId('packages').ariaBusy = 'true';
}

/** Shows the status line, which screen readers announce, and the lists below it. */
export function display(status: readonly (Node | string)[], lists: readonly HTMLElement[]): void {
  byId('status').replaceChildren(...status);
  byId('packages').replaceChildren(...lists);
  byId('packages').ariaBusy = 'false';
  focusPackage(awaited);
}

/** Lets screen readers announce a change that is visible elsewhere on the page. */
export function announce(text: string): void {
  byId('announcement').textContent = text;
}

/** Focuses a package, as soon as it is shown. @param place from 0. */
export function focusPackage(place: number): void {
  awaited = isBusy() ? place : -1;
  if (awaited === -1) packageLinks()[place]?.focus();
}

export function packageLinks(): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>('.packages a')];
}

/** A sentence with a query in it. The query is isolated, so that it keeps its own text direction. */
export function quoting(before: string, query: string, after: string): (Node | string)[] {
  return [`${before} “`, element('bdi', { class: 'query', translate: 'no' }, query), `”${after}`];
}
