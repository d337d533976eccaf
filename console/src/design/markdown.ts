const LONGEST = 50_000; // characters
// What takes the parser longer than its length says: things inside things, and each that may begin a link or a cell.
const DEEP = /^(?:[ \t]*(?:>|[*+-][ \t]|\d+[.)][ \t])){60}|^[ \t]{120}[ \t]*\S|(?:\[[^[\]]*){60}/m;
const MOST_BEGUN = 2_000;
const BEGINNING = /[[|]/g;
// Each sign of emphasis may end at every later one of its block.
const MOST_STRESSED = 1_000;
const STRESS = /[*_~]/g;
const BLOCK = /\n[ \t]*\n/;
const ADDRESS = /^(?:https?:\/\/|mailto:)/i;

/** Whether a text is drawn in a moment: what is huge, or nested without end, is nobody's reading. */
export function isTame(text: string): boolean {
  return (
    text.length <= LONGEST &&
    !DEEP.test(text) &&
    count(text, BEGINNING) <= MOST_BEGUN &&
    text.split(BLOCK).every((block) => count(block, STRESS) <= MOST_STRESSED)
  );
}

/** The address of a link that a reader may follow; undefined where it leads to anything but a page or a letter. */
export function openable(href: string | undefined): string | undefined {
  return href !== undefined && ADDRESS.test(href) && URL.canParse(href) ? href : undefined;
}

function count(text: string, signs: RegExp): number {
  return text.match(signs)?.length ?? 0;
}
