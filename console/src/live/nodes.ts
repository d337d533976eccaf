import type { Event, Node } from "../api/schema.ts";

/** What a node tells, as the events of it do: for what was said before anybody here listened. */
export function eventsOf(node: Node): Event[] {
  const [type, name, ...rest] = node.context.split(":");
  const payload = node.payload ?? {};
  const about = {
    cursor: "",
    at: node.updated_at,
    run_id: text(payload["run"]),
    node_id: node.id,
    seq: node.seq,
    version: node.version,
    author: rest.join(":"),
  };
  if (node.deleted) {
    return [{ ...about, kind: "delete" }];
  }
  if (type !== "text") {
    return [];
  }
  if (name !== "agent") {
    return [{ ...about, kind: "message", text: node.content }];
  }
  if (about.author === "tool" || payload["role"] === "tool") {
    const observed = { tool: text(payload["tool_name"]), call_id: text(payload["tool_call_id"]) };
    return [{ ...about, ...observed, kind: "observation", text: node.content, failed: Boolean(payload["error"]) }];
  }
  const calls = callsOf(payload["tool_calls"]);
  if (calls.length === 0) {
    return [{ ...about, kind: "answer", text: node.content }];
  }
  const thought: Event[] = node.content.trim() ? [{ ...about, kind: "thought", text: node.content }] : [];
  const actions = calls.map((call): Event => ({ ...about, ...call, kind: "action" }));
  return [...thought, ...actions];
}

function callsOf(value: unknown): { tool: string | null; call_id: string | null; arguments: unknown }[] {
  const given = Array.isArray(value) ? (value as Record<string, unknown>[]) : [];
  return given.map((call) => ({ tool: text(call["name"]), call_id: text(call["id"]), arguments: call["arguments"] }));
}

function text(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
