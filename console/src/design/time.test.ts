import assert from "node:assert/strict";
import { test } from "node:test";
import { ago } from "./time.ts";

const NOW = new Date("2026-03-10T12:00:00Z");

test("how long ago something was is told in whole units that have passed", () => {
  const moments = ["2026-03-10T11:59:30Z", "2026-03-10T11:58:01Z", "2026-03-10T10:01:00Z", "2026-03-08T00:00:00Z"];

  assert.deepEqual(
    moments.map((moment) => ago(moment, NOW)),
    ["just now", "1 minute ago", "1 hour ago", "2 days ago"],
  );
});

test("what is to come is told as well", () => {
  const moments = ["2026-03-10T12:00:30Z", "2026-03-10T14:00:00Z", "2028-03-10T12:00:00Z"];

  assert.deepEqual(
    moments.map((moment) => ago(moment, NOW)),
    ["in a moment", "in 2 hours", "in 2 years"],
  );
});
