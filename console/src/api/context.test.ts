import assert from "node:assert/strict";
import { test } from "node:test";
import { contextOf } from "./context.ts";

test("a step's record tells its parts, its limit, and what was recalled with its scores", () => {
  const memory = { id: "m", scope: "user", score: 0.5, left_out: "no room" };
  const parts = [
    { name: "window", tokens: 70, kept: 2, left_out: 1, reason: "all messages", refs: { first: 1 } },
    { name: "memories", tokens: 30, kept: 0, left_out: 1, reason: "none fit", refs: { memories: [memory] } },
  ];

  const context = contextOf({ sent: { tokens: 100, limit: 1000, parts } });

  assert.deepEqual([context.tokens, context.limit], [100, 1000]);
  assert.deepEqual(context.parts[0], { name: "window", tokens: 70, kept: 2, leftOut: 1, reason: "all messages" });
  assert.deepEqual(context.memories, [{ id: "m", scope: "user", score: 0.5, leftOut: "no room" }]);
});

test("a record of an older engine, or of none, is read as far as it goes", () => {
  assert.deepEqual(contextOf({ sent: {} }), { tokens: 0, limit: null, parts: [], memories: [] });
  assert.deepEqual(contextOf({ sent: { parts: [null, { name: "memories" }] } }).memories, []);
});
