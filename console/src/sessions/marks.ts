/** A piece of a text, and whether it is what was searched for. */
export interface Piece {
  readonly text: string;
  readonly marked: boolean;
}

const BEFORE = 60;
const AFTER = 200;

/** A text in pieces: those that are what was searched for, whatever their case, and those between. */
export function marked(text: string, sought: string | undefined): Piece[] {
  const pattern = sought === undefined ? null : patternOf(sought);
  if (pattern === null) {
    return [{ text, marked: false }];
  }
  // A split by a group gives what is between at even places, and what was found at odd ones.
  return text.split(pattern).flatMap((piece, index) => (piece ? [{ text: piece, marked: index % 2 === 1 }] : []));
}

/** Where a text has what was searched for, with some of what is around it, on one line. */
export function snippet(text: string, sought: string): Piece[] {
  const at = Math.max(0, text.search(patternOf(sought) ?? /^/));
  const begin = at > BEFORE ? at - BEFORE : 0;
  const end = at + sought.length + AFTER;
  const cut = text.slice(begin, end).replace(/\s+/g, " ");
  return marked(
    (begin > 0 ? "… " : "") + cut.trimStart() + (end < text.length ? " …" : ""),
    sought.replace(/\s+/g, " "),
  );
}

function patternOf(sought: string): RegExp | null {
  return sought === "" ? null : new RegExp(`(${sought.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")})`, "iu");
}
