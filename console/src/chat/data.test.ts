import assert from "node:assert/strict";
import { test } from "node:test";
import { beginning, isLong, readable } from "./data.ts";

test("objects and lists are read as JSON on lines, also where they come as text; the rest as it is", () => {
  assert.equal(readable({ parcel: "AB-1" }), '{\n  "parcel": "AB-1"\n}');
  assert.equal(readable('["a"]'), '[\n  "a"\n]');
  assert.equal(readable("[not JSON"), "[not JSON");
  assert.equal(readable('{"id":12345678901234567890}'), '{"id":12345678901234567890}');
  assert.equal(readable("5"), "5");
  assert.equal(readable(null), "null");
  assert.equal(readable(undefined), "");
});

test("what is long, in characters or lines, is folded and known by its beginning", () => {
  assert.ok(isLong("x".repeat(601)));
  assert.ok(isLong("x\n".repeat(13)));
  assert.ok(!isLong("x\n".repeat(11)));
  assert.equal(beginning(`first\n${"x".repeat(900)}`), "first");
});
