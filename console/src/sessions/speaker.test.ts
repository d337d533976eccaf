import assert from "node:assert/strict";
import { test } from "node:test";
import { speakerOf } from "./speaker.ts";

test("the context tells who speaks", () => {
  assert.deepEqual(speakerOf({ context: "text:user:ann", payload: null }), { role: "user", name: "ann" });
  assert.deepEqual(speakerOf({ context: "text:agent:desk", payload: {} }), { role: "assistant", name: "desk" });
  assert.deepEqual(speakerOf({ context: "text:agent:tool", payload: null }), { role: "tool", name: "tool" });
  assert.deepEqual(speakerOf({ context: "text:system:system", payload: null }), { role: "system", name: "system" });
  assert.deepEqual(speakerOf({ context: "", payload: null }), { role: "user", name: "" });
});

test("a name may have colons of its own", () => {
  assert.equal(speakerOf({ context: "text:user:urn:x:1", payload: null }).name, "urn:x:1");
});

test("the payload knows better, if what it says is a role", () => {
  assert.equal(speakerOf({ context: "text:agent:desk", payload: { role: "system" } }).role, "system");
  assert.equal(speakerOf({ context: "text:agent:desk", payload: { role: "admin" } }).role, "assistant");
});
