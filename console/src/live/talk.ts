import type { AgentRun, Event, Node } from "../api/schema.ts";
import { isNews } from "./cursors.ts";
import type { Sent } from "./frames.ts";
import { eventsOf } from "./nodes.ts";

/** What a node of the conversation tells, in its newest version. */
export interface Told {
  readonly id: string;
  readonly seq: number;
  readonly version: number;
  readonly parts: readonly Event[];
}

/** A call that somebody is asked about, and what they decided. */
export interface Approval {
  readonly id: string;
  readonly call: string;
  readonly tool: string;
  readonly arguments: unknown;
  readonly reason: string;
  readonly decision: string | null;
  readonly by: string | null;
}

/** How a run ended. */
export interface End {
  readonly state: "done" | "failed" | "cancelled";
  readonly error: Record<string, unknown> | null;
  readonly usage: Usage | null;
}

export interface Usage {
  readonly steps: number;
  readonly input: number;
  readonly output: number;
  readonly cost: number;
}

/** What is known of a run beside its nodes. */
export interface Underway {
  readonly id: string;
  /** The message that it answers, where that is known. */
  readonly trigger: string | null;
  /** The how manieth try it is to answer the message. */
  readonly attempt: number;
  readonly begun: boolean;
  /** What it is saying now, and is no node yet. */
  readonly text: string;
  readonly thinking: string;
  readonly approvals: readonly Approval[];
  readonly end: End | null;
}

/** All that is known of a conversation: facts, which may come twice and from several sides. */
export interface Talk {
  /** Up to where events were heard. */
  readonly cursor: string | null;
  /** The number of the first node that was read: of those before it, only edits are known. */
  readonly first: number;
  readonly nodes: ReadonlyMap<string, Told>;
  readonly runs: ReadonlyMap<string, Underway>;
}

export const SILENCE: Talk = { cursor: null, first: 0, nodes: new Map(), runs: new Map() };

/** The talk with these events, which come in order; what was heard before changes nothing. */
export function hear(talk: Talk, events: readonly Event[]): Talk {
  let cursor = talk.cursor;
  const nodes = new Map(talk.nodes);
  const runs = new Map(talk.runs);
  for (const event of events) {
    if (isNews(event.cursor, cursor)) {
      cursor = event.cursor;
      tellNode(nodes, event);
      tellRun(runs, event);
    }
  }
  return cursor === talk.cursor ? talk : { ...talk, cursor, nodes, runs };
}

interface Read {
  readonly nodes?: readonly Node[];
  readonly runs?: readonly AgentRun[];
  readonly first?: number;
}

/** The talk with nodes and runs that were read, which events may have told of already. */
export function recall(talk: Talk, read: Read): Talk {
  const nodes = new Map(talk.nodes);
  const runs = new Map(talk.runs);
  for (const event of (read.nodes ?? []).flatMap(eventsOf)) {
    tellNode(nodes, event);
  }
  for (const run of (read.runs ?? []).toSorted((one, other) => one.number - other.number)) {
    runs.set(run.id, known(runs.get(run.id) ?? unknown(run.id), run));
  }
  return { ...talk, first: read.first ?? talk.first, nodes, runs };
}

/** The talk that knows which run answers a message. */
export function expect(talk: Talk, { run_id, node_id }: Sent): Talk {
  const runs = new Map(talk.runs);
  const known = runs.get(run_id) ?? unknown(run_id);
  runs.set(run_id, { ...known, trigger: known.trigger ?? node_id }); // of merged messages, the first
  return { ...talk, runs };
}

function tellNode(nodes: Map<string, Told>, event: Event): void {
  const { node_id: id, seq, version = 1 } = event;
  if (!id || seq === null || seq === undefined) {
    return;
  }
  const told = nodes.get(id);
  if (
    told &&
    (told.version > version || (told.version === version && told.parts.some((part) => isSame(part, event))))
  ) {
    return;
  }
  const parts = told?.version === version && event.kind !== "delete" ? [...told.parts, event] : [event];
  nodes.set(id, { id, seq, version, parts });
}

function isSame(part: Event, event: Event): boolean {
  return part.kind === "delete" || (part.kind === event.kind && (part.call_id ?? null) === (event.call_id ?? null));
}

function tellRun(runs: Map<string, Underway>, event: Event): void {
  if (!event.run_id || (event.version ?? 1) > 1) {
    return;
  }
  const run = runs.get(event.run_id) ?? unknown(event.run_id);
  const next = after(run, event);
  if (next !== run || !runs.has(run.id)) {
    runs.set(run.id, { ...next, begun: true });
  }
}

function after(run: Underway, event: Event): Underway {
  const text = event.text ?? "";
  switch (event.kind) {
    case "token":
      return event.reset ? { ...run, text, thinking: "" } : { ...run, text: run.text + text };
    case "thinking":
      return event.reset ? { ...run, text: "", thinking: text } : { ...run, thinking: run.thinking + text };
    case "approval":
    case "decision":
      return { ...run, approvals: asked(run.approvals, event) };
    case "done":
    case "error":
      return { ...run, text: "", thinking: "", end: endOf(event) };
    default: // A node has what was said up to here.
      return { ...run, text: "", thinking: "" };
  }
}

function asked(approvals: readonly Approval[], event: Event): readonly Approval[] {
  const id = event.approval_id ?? "";
  const before = approvals.find((each) => each.id === id);
  const approval: Approval = {
    id,
    call: event.call_id ?? "",
    tool: event.tool ?? "",
    arguments: before?.arguments ?? event.arguments,
    reason: before?.reason ?? event.reason ?? "listed",
    decision: event.kind === "decision" ? (event.decision ?? null) : (before?.decision ?? null),
    by: event.kind === "decision" ? (event.author ?? null) : (before?.by ?? null),
  };
  return before ? approvals.map((each) => (each.id === id ? approval : each)) : [...approvals, approval];
}

function endOf(event: Event): End {
  const usage = event.usage ?? null;
  return {
    state: event.kind === "error" ? "failed" : event.state === "cancelled" ? "cancelled" : "done",
    error: event.error ?? null,
    usage: usage && {
      steps: count(usage["steps"]),
      input: count(usage["input_tokens"]),
      output: count(usage["output_tokens"]),
      cost: count(usage["cost"]),
    },
  };
}

function known(before: Underway, run: AgentRun): Underway {
  const { trigger, attempt, state } = run;
  const begun = before.begun || state !== "queued";
  const end =
    before.end ?? (state === "done" || state === "failed" || state === "cancelled" ? endedAs(run, state) : null);
  const isOld =
    trigger === before.trigger && attempt === before.attempt && begun === before.begun && end === before.end;
  return isOld ? before : { ...before, trigger, attempt, begun, end };
}

function endedAs({ error, steps, input_tokens, output_tokens, cost }: AgentRun, state: End["state"]): End {
  return { state, error, usage: { steps, input: input_tokens, output: output_tokens, cost } };
}

function unknown(id: string): Underway {
  return { id, trigger: null, attempt: 1, begun: false, text: "", thinking: "", approvals: [], end: null };
}

function count(value: unknown): number {
  return typeof value === "number" ? value : 0;
}
