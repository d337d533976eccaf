import assert from "node:assert/strict";
import { afterEach, mock, test } from "node:test";

Object.assign(globalThis, { document: { querySelector: () => null } }); // where the path prefix is looked for
const { wholeRun } = await import("./wholeRun.ts");

afterEach(() => mock.restoreAll());

test("a run that takes several pages is read as one", async () => {
  const asked: string[] = [];
  const last = 3;
  mock.method(globalThis, "fetch", (path: string) => {
    asked.push(path);
    const number = asked.length;
    const [steps, executions, approvals] = [[{ number }], [{ step: number }], number === 2 ? [{ step: 2 }] : []];
    const run = { state: number === last ? "done" : "running" };
    return Promise.resolve(
      Response.json({ run, steps, executions, asked: approvals, cursor: number === last ? null : number }),
    );
  });

  const whole: unknown = await wholeRun("7", new AbortController().signal);

  assert.deepEqual(asked, ["/api/runs/7", "/api/runs/7?since=1", "/api/runs/7?since=2"]);
  assert.deepEqual(whole, {
    run: { state: "done" },
    steps: [{ number: 1 }, { number: 2 }, { number: 3 }],
    executions: [{ step: 1 }, { step: 2 }, { step: 3 }],
    asked: [{ step: 2 }],
    cursor: null,
  });
});
