import assert from "node:assert/strict";
import { test } from "node:test";
import { json } from "./json.ts";

test("what hides or turns the writing is shown by its code, and means the same", () => {
  const value = { "pay \u202Eeve": "bob\u2066\u200B \x1B[31m\x9B", list: ["a\nb", null, 5] };

  assert.equal(json(value), '{"pay \\u202eeve":"bob\\u2066\\u200b \\u001b[31m\\u009b","list":["a\\nb",null,5]}');
  assert.deepEqual(JSON.parse(json(value, 2)), value);
});

test("on lines of their own are the members, and no text", () => {
  assert.equal(json({ a: "b\nc" }, 2), '{\n  "a": "b\\nc"\n}');
  assert.equal(json("شركة 👩\u200D👧"), '"شركة 👩\u200D👧"');
  assert.equal(json(undefined), "");
});
