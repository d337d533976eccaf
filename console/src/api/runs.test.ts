import assert from "node:assert/strict";
import { test } from "node:test";
import { hasEnded } from "./runs.ts";
import type { Run } from "./schema.ts";

test("a run has ended when nothing comes of it any more, however it went", () => {
  const states: Run["state"][] = ["queued", "running", "waiting", "done", "failed", "cancelled"];

  assert.deepEqual(
    states.filter((state) => hasEnded({ state } as Run)),
    ["done", "failed", "cancelled"],
  );
});
