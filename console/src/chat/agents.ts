import type { AgentEntry } from "../api/schema.ts";

const DEFAULT = "default";

/** Whom a person most likely wants, of those that are served: the one they talked to last, the default one, or any. */
export function preferred(agents: readonly AgentEntry[], last: string | null): AgentEntry | undefined {
  const served = agents.filter((agent) => agent.served);
  return served.find(({ name }) => name === last) ?? served.find(({ name }) => name === DEFAULT) ?? served[0];
}
