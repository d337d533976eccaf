import assert from "node:assert/strict";
import { afterEach, mock, test } from "node:test";

Object.assign(globalThis, { document: { querySelector: () => null } }); // where the path prefix is looked for
const { diagnose, refusal } = await import("./diagnosis.ts");

const OWN = { id: "c", agent: "desk", user: "ann" };

/** Have the API answer for a caller with these scopes, and a session with this conversation. */
function answer(scopes: readonly string[], talk: object | null): void {
  const answers: Record<string, object | null> = {
    "/api/agents": { agents: [{ name: "desk", active: true, kind: "llm" }] },
    "/api/me": { user: "ann", scopes },
    "/api/conversations/by-session": talk,
  };
  mock.method(globalThis, "fetch", (url: string) => {
    const found = answers[url.split("?")[0]!];
    return Promise.resolve(Response.json(found ?? {}, { status: found ? 200 : 404 }));
  });
}

afterEach(() => mock.restoreAll());

test("who may only read is told so, and reads what was said", async () => {
  answer(["read"], OWN);

  const found = await diagnose("ann", "desk", "s");

  assert.deepEqual([found?.problem.status, found?.conversation], [403, "c"]);
});

test("who may only read is told so, too, where nothing was said yet", async () => {
  answer(["read"], null);

  const found = await diagnose("ann", "desk", "s");

  assert.deepEqual([found?.problem.status, found?.conversation], [403, undefined]);
});

test("a session with another agent says with whom, and another user's is not one's own", async () => {
  answer(["read", "write"], { ...OWN, agent: "moody" });
  const elsewhere = await diagnose("ann", "desk", "s");
  answer(["read", "write"], { ...OWN, user: "bob" });
  const anothers = await diagnose("ann", "desk", "s");
  const nobody = await diagnose("ann", "nobody", "s");

  assert.equal(elsewhere?.agent, "moody");
  assert.deepEqual([anothers?.problem.status, anothers?.conversation], [403, undefined]);
  assert.equal(nobody?.problem.status, 404);
});

test("what the API knows nothing against may pass, as a new session whose first try failed", async () => {
  answer(["read", "write"], OWN);
  assert.equal(await diagnose("ann", "desk", "s"), null);

  answer(["read", "write"], null);
  assert.equal(await diagnose("ann", "desk", "s"), null);
});

test("what to do about a refused message is told once", () => {
  const problem = refusal({
    kind: "refused",
    code: "too_large",
    message: "It is too large. Send less.",
    next: "Send less.",
  });

  assert.deepEqual([problem.what, problem.next], ["It is too large.", "Send less."]);
});
