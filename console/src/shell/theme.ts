import { useSyncExternalStore } from "react";
import { keep, kept } from "../design/kept.ts";

type Theme = "light" | "dark";
/** What was chosen; `system`: whatever the system prefers, at any time. */
export type Choice = Theme | "system";

const STORED = "holdfast.theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();
let choice = read();

system.addEventListener("change", apply);
addEventListener("storage", ({ key }) => {
  if (key === STORED || key === null) {
    choice = read(); // chosen in another tab
    apply();
  }
});

/** The choice between light and dark, and how to choose anew. */
export function useTheme(): [Choice, (next: Choice) => void] {
  return [useSyncExternalStore(subscribe, () => choice), choose];
}

/** Light or dark: what was chosen here before, else what the system prefers. */
export function preferred(): Theme {
  return choice === "system" ? (system.matches ? "dark" : "light") : choice;
}

function choose(next: Choice): void {
  choice = next;
  keep(STORED, next === "system" ? null : next);
  apply();
}

function apply(): void {
  document.documentElement.dataset["theme"] = preferred();
  for (const listener of listeners) {
    listener();
  }
}

function read(): Choice {
  const stored = kept(STORED);
  return stored === "light" || stored === "dark" ? stored : "system";
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
