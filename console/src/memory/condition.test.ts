import assert from "node:assert/strict";
import { test } from "node:test";
import type { Memory } from "../api/schema.ts";
import { conditions } from "./condition.ts";

const NOW = new Date("2026-06-01T12:00:00Z");
const BEFORE = "2026-05-31T00:00:00Z";
const AFTER = "2026-06-02T00:00:00Z";
const PLAIN = { pinned: false, buried: false, expires_at: null, valid_from: BEFORE, valid_to: null } as Memory;

function words(given: Partial<Memory>): string[] {
  return conditions({ ...PLAIN, ...given }, NOW).map(({ word }) => word);
}

test("a memory that is recalled as any other has no condition", () => {
  assert.deepEqual(words({ expires_at: AFTER, valid_to: AFTER }), []);
});

test("each condition is told, and several at once", () => {
  assert.deepEqual(words({ valid_from: AFTER }), ["not yet valid"]);
  assert.deepEqual(words({ pinned: true, buried: true, expires_at: BEFORE, valid_to: NOW.toISOString() }), [
    "pinned",
    "buried",
    "expired",
    "superseded",
  ]);
});
