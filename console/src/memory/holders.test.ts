import assert from "node:assert/strict";
import { test } from "node:test";
import { namedHolder, told } from "./holders.ts";

test("an address names an owner by scope and name, and the organization by its scope alone", () => {
  assert.deepEqual(namedHolder({ scope: "session", name: "web-42" }), { scope: "session", name: "web-42" });
  assert.deepEqual(namedHolder({ name: "ann" }), { scope: "user", name: "ann" });
  assert.deepEqual(namedHolder({ scope: "organization", name: "acme" }), { scope: "organization", name: null });
});

test("an address that names nobody, or a scope that there is not, names no owner", () => {
  for (const named of [{}, { scope: "agent" }, { scope: "user", name: "" }, { scope: "planet", name: "x" }]) {
    assert.equal(namedHolder(named), undefined);
  }
});

test("an owner is told in words", () => {
  assert.equal(told({ scope: "agent", name: "desk" }), "the agent desk");
  assert.equal(told({ scope: "organization", name: null }), "the organization");
});
