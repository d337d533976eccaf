import assert from "node:assert/strict";
import { test } from "node:test";
import { sentence } from "./sentence.ts";

test("what the engine says begins large and ends once", () => {
  const said = [
    "use a key that has it: `holdfast keys create` makes one",
    "Reload the page.",
    "`holdfast up` starts it",
  ];

  assert.deepEqual(said.map(sentence), [
    "Use a key that has it: `holdfast keys create` makes one.",
    "Reload the page.",
    "`holdfast up` starts it.",
  ]);
});
