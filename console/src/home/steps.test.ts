import assert from "node:assert/strict";
import { test } from "node:test";
import type { Key } from "../api/schema.ts";
import { type Facts, STEPS, progress } from "./steps.ts";

const NOTHING_KNOWN: Facts = { runs: undefined, owners: undefined, visits: [], keys: undefined, parts: undefined };

test("nothing is ticked before it is known", () => {
  assert.deepEqual(done(NOTHING_KNOWN), []);
});

test("a fresh engine has everything but what its parts have by themselves before it", () => {
  const parts = [
    { name: "model", state: "reduced" },
    { name: "embeddings", state: "ok" },
  ] as const;

  assert.deepEqual(done({ runs: [], owners: [], visits: ["chat"], keys: [], parts }), ["meaning"]);
});

test("every step is ticked once there is something to show for it", () => {
  const parts = [
    { name: "model", state: "ok" },
    { name: "embeddings", state: "ok" },
  ] as const;

  const found = done({ runs: [{}], owners: [{}], visits: ["chat", "sessions"], keys: [key("key")], parts });

  assert.deepEqual(found, STEPS);
});

test("a browser that is signed in is no program", () => {
  assert.deepEqual(done({ ...NOTHING_KNOWN, keys: [key("session")] }), []);
});

function done(facts: Facts): readonly string[] {
  const found = progress(facts);
  return STEPS.filter((step) => found[step]);
}

function key(kind: Key["kind"]): Key {
  return {
    id: "",
    kind,
    tenant: "",
    principal: "ann",
    agent: null,
    label: "",
    scopes: [],
    created_at: "",
    expires_at: null,
    revoked_at: null,
  };
}
