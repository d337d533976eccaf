import assert from "node:assert/strict";
import { test } from "node:test";
import { took } from "./usage.ts";

test("what an answer took is told in words, with a cost where there is a price", () => {
  assert.equal(took({ steps: 1, input: 1200, output: 34, cost: 0 }), "1 step · 1,234 tokens");
  assert.equal(took({ steps: 2, input: 1, output: 0, cost: 0.00125 }), "2 steps · 1 token · cost 0.0013");
  assert.equal(took({ steps: 0, input: 0, output: 0, cost: 0 }), "");
});
