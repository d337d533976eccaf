import assert from "node:assert/strict";
import { test } from "node:test";
import { isNews } from "./cursors.ts";

test("a cursor is news where either of its counts went on", () => {
  const inOrder = [
    "0.10000000000",
    "1.10000000000",
    "1.10010000054",
    "1.10010000066.1",
    "2.10010000066",
    "2.19999999999",
  ];

  inOrder.forEach((cursor, index) => {
    assert.ok(isNews(cursor, null));
    assert.ok(inOrder.slice(0, index).every((seen) => isNews(cursor, seen)));
    assert.ok(inOrder.slice(index).every((seen) => !isNews(cursor, seen)));
  });
});

test("numbers of more digits than a double keeps are told apart", () => {
  assert.ok(isNews("1.90071992547409930", "1.90071992547409929"));
  assert.ok(!isNews("1.90071992547409929", "1.90071992547409930"));
});
