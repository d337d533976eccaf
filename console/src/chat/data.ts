import { json } from "../design/json.ts";

const FOLDED = 600; // characters, or
const FOLDED_LINES = 12;

/** A value of a tool, as a person reads it: text as it is, the rest as JSON on lines of its own. */
export function readable(value: unknown): string {
  const given = typeof value === "string" ? (parsed(value) ?? value) : value;
  return typeof given === "string" ? given : json(given, 2);
}

/** Whether a text is too long to be shown unasked. */
export function isLong(text: string): boolean {
  return text.length > FOLDED || text.split("\n", FOLDED_LINES + 1).length > FOLDED_LINES;
}

/** What a long text begins with. */
export function beginning(text: string): string {
  return text.slice(0, 80).split("\n", 1)[0]!;
}

/** The object or list that a text is the JSON of; not where it may have a number that would not be read exactly. */
function parsed(text: string): object | undefined {
  if (!/^\s*[[{]/.test(text) || /\d{16}/.test(text)) {
    return undefined;
  }
  try {
    return JSON.parse(text) as object;
  } catch {
    return undefined;
  }
}
