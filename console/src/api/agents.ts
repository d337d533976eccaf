import type { AgentEntry } from "./schema.ts";

/** Those that can be talked to. */
export function talkative(agents: readonly AgentEntry[]): readonly AgentEntry[] {
  return agents.filter(({ active, kind }) => active && kind !== "ui");
}
