import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Problem } from "../api/problem.ts";
import { complain, shown } from "./toasts.ts";

test("a failure is told by what, why and what next, each a sentence", () => {
  mock.timers.enable();

  complain(new Problem(403, "forbidden", "it was not pinned", "the scope 'write' is required", "use another key"));

  assert.deepEqual(
    shown().map(({ text, tone }) => [text, tone]),
    [["It was not pinned. The scope 'write' is required. Use another key.", "bad"]],
  );
});
