import { kept, keep } from "../design/kept.ts";

const STORED = "holdfast.visited";

/** Remember, in this browser, that a screen was opened: the first word of its path. */
export function visited(screen: string): void {
  const before = visits();
  if (screen !== "" && !before.includes(screen)) {
    keep(STORED, [...before, screen].join(" "));
  }
}

/** The screens that were opened in this browser. */
export function visits(): readonly string[] {
  return kept(STORED)?.split(" ") ?? [];
}
