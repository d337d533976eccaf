import assert from "node:assert/strict";
import { test } from "node:test";
import type { AgentEntry } from "../api/schema.ts";
import { preferred } from "./agents.ts";

function agent(name: string, served: boolean): AgentEntry {
  return { name, served, kind: "llm", description: "", active: true };
}

test("the agent that one talked to last is opened, then the default one, then any", () => {
  const agents = [agent("default", true), agent("sales", true), agent("support", true)];

  assert.equal(preferred(agents, "support")?.name, "support");
  assert.equal(preferred(agents, "gone")?.name, "default");
  assert.equal(preferred(agents.slice(1), null)?.name, "sales");
});

test("an agent that nobody serves is never opened by itself", () => {
  const agents = [agent("default", false), agent("sales", false), agent("support", true)];

  assert.equal(preferred(agents, "sales")?.name, "support");
  assert.equal(preferred(agents.slice(0, 2), "sales"), undefined);
});
