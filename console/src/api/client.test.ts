import assert from "node:assert/strict";
import { afterEach, mock, test } from "node:test";
import { Problem } from "./problem.ts";

Object.assign(globalThis, { document: { querySelector: () => null } }); // where the path prefix is looked for
const { call, fetched } = await import("./client.ts");

afterEach(() => mock.restoreAll());

test("a server that falls silent is given up, and its health sooner than all else", async () => {
  const patience: number[] = [];
  mock.method(AbortSignal, "timeout", (milliseconds: number) => {
    patience.push(milliseconds);
    return AbortSignal.abort(new DOMException("enough", "TimeoutError"));
  });
  mock.method(globalThis, "fetch", silent);

  for (const asked of [call("GET /api/me", {}), call("GET /readyz", {}), fetched("/api/me")]) {
    await assert.rejects(asked, { code: "unreachable", isPassing: true });
  }
  assert.deepEqual(patience, [30_000, 10_000, 30_000]);
});

test("whoever wants no answer any more is told nothing else", async () => {
  mock.method(globalThis, "fetch", silent);

  await assert.rejects(call("GET /api/me", { signal: AbortSignal.abort() }), { name: "AbortError" });
});

test("what is refused says why, and is tried again only where that may help", async () => {
  const told = { code: "forbidden", what: "no", why: "the scope", next: "Ask." };
  mock.method(globalThis, "fetch", () => Promise.resolve(Response.json(told, { status: 403 })));

  await assert.rejects(fetched("/api/sessions/active"), { status: 403, ...told, isPassing: false });
  assert.ok(!Problem.from(new Error("a slip of ours")).isPassing);
});

function silent(_: unknown, { signal }: RequestInit): Promise<Response> {
  return new Promise((_resolve, reject) => {
    const give = (): void => reject(signal!.reason as Error);
    signal!.addEventListener("abort", give);
    if (signal!.aborted) {
      give();
    }
  });
}
