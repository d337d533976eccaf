import assert from "node:assert/strict";
import { test } from "node:test";
import { callsOf, insteadOf, restOf, runOf } from "./payload.ts";

const CALLS = { role: "assistant", run: "r1", tool_calls: [{ id: "1", name: "track", arguments: {} }] };
const RESULT = { tool_call_id: "1", tool_name: "track", result: { place: "Bonn" } };

test("what came with an event is told once: its calls, its run, and the rest", () => {
  assert.deepEqual(callsOf({ payload: CALLS }), CALLS.tool_calls);
  assert.equal(runOf({ payload: CALLS }), "r1");
  assert.deepEqual(restOf({ payload: CALLS }), []);
  assert.deepEqual(restOf({ payload: RESULT }), Object.entries(RESULT));
  assert.deepEqual([callsOf({ payload: null }), runOf({ payload: null }), restOf({ payload: null })], [[], null, []]);
});

test("an event without words is told by what it does", () => {
  assert.equal(insteadOf({ payload: CALLS }), "calls track");
  assert.equal(insteadOf({ payload: RESULT }), "result of track");
  assert.equal(insteadOf({ payload: null }), "no text");
});
