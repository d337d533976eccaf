/** Go to the screen's field for searching; a screen that has none marks the one it has with `data-search`. */
export function focusSearch(): void {
  document.querySelector<HTMLElement>('main :is(input[type="search"], [data-search])')?.focus();
}
