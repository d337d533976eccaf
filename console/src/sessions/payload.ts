import type { Node } from "../api/schema.ts";

/** A tool that is called. */
interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: unknown;
}

/** The tools that an event calls. */
export function callsOf({ payload }: Pick<Node, "payload">): ToolCall[] {
  const calls = payload?.["tool_calls"];
  return Array.isArray(calls) ? calls : [];
}

/** What an event does that says nothing. */
export function insteadOf(node: Pick<Node, "payload">): string {
  const calls = callsOf(node).map(({ name }) => name);
  const tool = node.payload?.["tool_name"];
  return calls.length > 0 ? `calls ${calls.join(", ")}` : typeof tool === "string" ? `result of ${tool}` : "no text";
}

/** The run that an event came from, if it was one. */
export function runOf({ payload }: Pick<Node, "payload">): string | null {
  const run = payload?.["run"];
  return typeof run === "string" ? run : null;
}

/** What there is to an event beside what is shown of it in another way. */
export function restOf({ payload }: Pick<Node, "payload">): [string, unknown][] {
  return Object.entries(payload ?? {}).filter(([name]) => name !== "tool_calls" && name !== "run" && name !== "role");
}
