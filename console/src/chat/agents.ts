import type { AgentEntry } from "../api/schema.ts";

const DEFAULT = "default";

/** Whom a person most likely wants: the one they talked to last, the default one, or any. */
export function preferred(agents: readonly AgentEntry[], last: string | null): AgentEntry | undefined {
  return agents.find(({ name }) => name === last) ?? agents.find(({ name }) => name === DEFAULT) ?? agents[0];
}
