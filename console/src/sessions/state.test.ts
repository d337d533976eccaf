import assert from "node:assert/strict";
import { test } from "node:test";
import type { StateChanged } from "../api/schema.ts";
import { differencesAt, stateAt } from "./state.ts";

const CHANGES = [
  change(0, { step: 0, plan: "free" }),
  change(2, { step: 1, "user:theme": "dark" }),
  change(2, { step: 2 }, ["plan"]),
  change(5, { step: 2, cart: { pears: 3 } }),
  change(6, {}, ["cart", "user:theme"]),
];

test("the state after an event has all that was changed up to it, and with it", () => {
  assert.deepEqual(Object.fromEntries(stateAt(CHANGES, 0).own), { step: 0, plan: "free" });
  assert.deepEqual(Object.fromEntries(stateAt(CHANGES, 1).own), { step: 0, plan: "free" });
  assert.deepEqual(Object.fromEntries(stateAt(CHANGES, 2).own), { step: 2 });
  assert.deepEqual(Object.fromEntries(stateAt(CHANGES, 5).own), { step: 2, cart: { pears: 3 } });
  assert.deepEqual(Object.fromEntries(stateAt(CHANGES, 99).own), { step: 2 });
});

test("what is the user's and the app's stands apart, since a fork does not copy it", () => {
  assert.deepEqual(Object.fromEntries(stateAt(CHANGES, 5).shared), { "user:theme": "dark" });
  assert.deepEqual(Object.fromEntries(stateAt(CHANGES, 6).shared), {});
});

test("a step tells what it added, changed and removed, by name", () => {
  assert.deepEqual(differencesAt(CHANGES, 2), [
    { name: "plan", kind: "removed", before: "free", after: undefined },
    { name: "step", kind: "changed", before: 0, after: 2 },
    { name: "user:theme", kind: "added", before: undefined, after: "dark" },
  ]);
});

test("a step that changed nothing tells nothing, nor does a value that was set anew to the same", () => {
  assert.deepEqual(differencesAt(CHANGES, 1), []);
  assert.deepEqual(
    differencesAt(CHANGES, 5).map(({ name }) => name),
    ["cart"],
  );
});

test("what was set and deleted in one step is no difference", () => {
  assert.deepEqual(differencesAt([change(1, { brief: 1 }), change(1, {}, ["brief"])], 1), []);
});

test("names of any kind are names", () => {
  const hostile = [change(1, JSON.parse('{"__proto__": 1, "constructor": null}'))];

  assert.deepEqual(
    [...stateAt(hostile, 1).own],
    [
      ["__proto__", 1],
      ["constructor", null],
    ],
  );
  assert.deepEqual(
    differencesAt(hostile, 1).map(({ name, kind }) => `${name} ${kind}`),
    ["__proto__ added", "constructor added"],
  );
});

test("a difference of every step, made one after the other, gives the state after the last", () => {
  const state = new Map<string, unknown>();

  for (let seq = 0; seq <= 6; seq++) {
    for (const { name, kind, after } of differencesAt(CHANGES, seq)) {
      kind === "removed" ? state.delete(name) : state.set(name, after);
    }
    const { own, shared } = stateAt(CHANGES, seq);
    assert.deepEqual(state, new Map([...own, ...shared]));
  }
});

function change(seq: number, set: Record<string, unknown>, deleted: string[] = []): StateChanged {
  return { seq, revision: 0, at: "2026-01-01T00:00:00Z", set, deleted };
}
