import assert from "node:assert/strict";
import { test } from "node:test";
import { type Piece, difference } from "./difference.ts";

function side(pieces: readonly Piece[], without: Piece["kind"]): string {
  return pieces
    .filter(({ kind }) => kind !== without)
    .map(({ text }) => text)
    .join("");
}

test("what stayed, what went and what came is told word by word", () => {
  assert.deepEqual(difference("Ann likes green tea", "Ann likes black tea"), [
    { kind: "same", text: "Ann likes " },
    { kind: "removed", text: "green " },
    { kind: "added", text: "black " },
    { kind: "same", text: "tea" },
  ]);
});

test("scripts without blanks are compared by characters", () => {
  assert.deepEqual(difference("我喜欢茶", "我爱茶"), [
    { kind: "same", text: "我" },
    { kind: "removed", text: "喜欢" },
    { kind: "added", text: "爱" },
    { kind: "same", text: "茶" },
  ]);
});

test("both texts can be read back from what is told", () => {
  const texts = ["", " ", "a", "a b c", "c b a", "a\n\nb  c\t", "日本 a語b", "x ".repeat(3000)];
  for (const before of texts) {
    for (const after of texts) {
      const pieces = difference(before, after);

      assert.equal(side(pieces, "added"), before);
      assert.equal(side(pieces, "removed"), after);
    }
  }
});
