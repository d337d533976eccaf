import assert from "node:assert/strict";
import { test } from "node:test";
import { counted, lasted, percentage, price, tokens } from "./figures.ts";

test("how many there are is told in words", () => {
  assert.equal(counted(1, "event"), "1 event");
  assert.equal(counted(1234, "event"), "1,234 events");
  assert.equal(tokens(1200, 34), "1,200 in, 34 out");
});

test("shares, times and costs are as precise as it matters", () => {
  assert.equal(percentage(1, 3), "33%");
  assert.equal(percentage(1, 0), "0%");
  assert.equal(lasted("2026-01-31T12:00:00.000Z", "2026-01-31T12:00:01.250Z"), "1.3 s");
  assert.equal(lasted("2026-01-31T12:00:00Z", "2026-01-31T12:20:34Z"), "1,234 s");
  assert.deepEqual([0, 0.00125, 1.239].map(price), ["–", "0.0013", "1.24"]);
});
