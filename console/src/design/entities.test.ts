import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeNamedCharacterReference } from "./entities.ts";

test("a named character is known by its name alone", () => {
  const found = ["amp", "lt", "nbsp", "Eacute", "hellip", "diams"].map(decodeNamedCharacterReference);

  assert.deepEqual(found, ["&", "<", "\u00a0", "É", "…", "♦"]);
});

test("what is no name stays as it was written", () => {
  const found = ["", "AMP ", "toString", "__proto__", "lt;"].map(decodeNamedCharacterReference);

  assert.deepEqual(found, [false, false, false, false, false]);
});
