/** What this browser keeps under a name, if anything. */
export function kept(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null; // a browser may be told to keep nothing
  }
}

/** Have this browser keep a text, where it does; null: no more. */
export function keep(name: string, text: string | null): void {
  try {
    if (text === null) {
      localStorage.removeItem(name);
    } else {
      localStorage.setItem(name, text);
    }
  } catch {
    // The same: then it holds for as long as the page is open.
  }
}
