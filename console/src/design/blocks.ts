const FENCE = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/;
const BLANK = /^[ \t]*$/;
const GOES_ON = /^(?:\s|[-+*](?:[ \t]|$)|\d+(?:[.)](?:[ \t]|$)|$))/; // what belongs to a list before it, or may yet
// What is said here changes how things are drawn elsewhere, or goes on over empty lines.
const WHOLE = /^ {0,3}(?:\[[^\]]+\]:|<(?:pre|script|style|textarea|[?!]))/im;

/** A text in pieces that Markdown draws one by one as it draws the whole; of one that grows, all but the last stay. */
export function blocks(text: string): readonly string[] {
  if (WHOLE.test(text)) {
    return [text];
  }
  const found: string[] = [];
  let begin = 0;
  let place = 0;
  let fence = "";
  let isAfterBlank = false;
  for (const line of text.split("\n")) {
    if (fence === "" && isAfterBlank && !BLANK.test(line) && !GOES_ON.test(line)) {
      found.push(text.slice(begin, place));
      begin = place;
    }
    const [, marks = ""] = FENCE.exec(line) ?? [];
    if (fence === "") {
      fence = marks;
    } else if (marks.startsWith(fence) && line.trim() === marks) {
      fence = "";
    }
    isAfterBlank = BLANK.test(line);
    place += line.length + 1;
  }
  return [...found, text.slice(begin)];
}
