import assert from "node:assert/strict";
import { test } from "node:test";
import { type Piece, marked, snippet } from "./marks.ts";

test("every place is marked, whatever its case, and nothing is lost", () => {
  const pieces = marked("Tea, green tea or TEAPOTS", "tea");

  assert.equal(shown(pieces), "[Tea], green [tea] or [TEA]POTS");
});

test("what means something in a pattern is searched for as it stands", () => {
  for (const sought of ["a.b", "(", "[x]", "1 + 1 = $2", "\\d", "a|b", "^", "a-b", "{2}", "/", "<b>"]) {
    assert.equal(shown(marked(`so: ${sought} there`, sought)), `so: [${sought}] there`);
  }
  assert.equal(shown(marked("axb", "a.b")), "axb");
});

test("without words nothing is marked", () => {
  assert.equal(shown(marked("tea", undefined)), "tea");
  assert.equal(shown(marked("tea", "")), "tea");
  assert.deepEqual(marked("", "tea"), []);
});

test("letters beyond ASCII are found in either case", () => {
  assert.equal(shown(marked("Süß: ÄPFEL, 😀", "äpfel")), "Süß: [ÄPFEL], 😀");
  assert.equal(shown(marked("a 😀 b", "😀")), "a [😀] b");
});

test("a snippet shows the first place with what is around it, on one line", () => {
  const long = `${"before ".repeat(40)}\n\n  the parcel  \n${"after ".repeat(80)}`;

  const pieces = snippet(long, "Parcel");

  assert.match(shown(pieces), /^… .*before the \[parcel\] after .* …$/);
  assert.ok(pieces.map(({ text }) => text).join("").length < 300);
});

test("a short text is shown whole, and one whose case the server knows better from its beginning", () => {
  assert.equal(shown(snippet("my parcel", "parcel")), "my [parcel]");
  assert.equal(shown(snippet("İstanbul", "i̇stanbul")), "İstanbul");
});

function shown(pieces: readonly Piece[]): string {
  return pieces.map(({ text, marked }) => (marked ? `[${text}]` : text)).join("");
}
