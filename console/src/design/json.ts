/** Signs that are not seen, or change where others are seen: control characters, and those that turn the writing. */
export const UNSEEN = /[\0-\x09\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/;

/** JSON in which all that is written can be seen, where it is; on one line, or on lines of their own with an indent. */
export function json(value: unknown, indent?: number): string {
  const written = JSON.stringify(value, null, indent) ?? "";
  return written.replace(new RegExp(UNSEEN, "g"), (sign) => `\\u${hex(sign.charCodeAt(0))}`);
}

/** A code as four digits. */
export function hex(code: number): string {
  return code.toString(16).padStart(4, "0");
}
