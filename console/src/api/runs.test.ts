import assert from "node:assert/strict";
import { test } from "node:test";
import { hasEnded } from "./runs.ts";
import type { AgentRun } from "./schema.ts";

test("a run has ended when nothing comes of it any more, however it went", () => {
  const states: AgentRun["state"][] = ["queued", "running", "waiting", "done", "failed", "cancelled"];

  assert.deepEqual(
    states.filter((state) => hasEnded({ state } as AgentRun)),
    ["done", "failed", "cancelled"],
  );
});
