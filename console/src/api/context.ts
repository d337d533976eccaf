import type { RequestedApproval, RunStory, RunStep } from "./schema.ts";

/** What a part of a request takes, and why it is there. */
export interface Part {
  readonly name: string;
  readonly tokens: number;
  readonly kept: number;
  readonly leftOut: number;
  readonly reason: string;
}

/** A memory that was recalled for a turn; `leftOut` says why the model was not shown it. */
export interface Recalled {
  readonly id: string;
  readonly scope: string;
  readonly score: number;
  readonly leftOut: string;
}

/** What the model was sent in a step. */
export interface Context {
  readonly tokens: number;
  /** What a request may have at most; null: it was not written down. */
  readonly limit: number | null;
  readonly parts: readonly Part[];
  readonly memories: readonly Recalled[];
}

/** What a step's record says of its context. */
export function contextOf({ sent }: Pick<RunStep, "sent">): Context {
  const parts = objects(sent["parts"]);
  const memories = parts
    .filter(({ name }) => name === "memories")
    .flatMap(({ refs }) => objects(object(refs)["memories"]));
  return {
    tokens: number(sent["tokens"]),
    limit: typeof sent["limit"] === "number" ? sent["limit"] : null,
    parts: parts.map((part) => ({
      name: text(part["name"]),
      tokens: number(part["tokens"]),
      kept: number(part["kept"]),
      leftOut: number(part["left_out"]),
      reason: text(part["reason"]),
    })),
    memories: memories.map((memory) => ({
      id: text(memory["id"]),
      scope: text(memory["scope"]),
      score: number(memory["score"]),
      leftOut: text(memory["left_out"]),
    })),
  };
}

/** What people were asked in a run, each with the tool that was meant. */
export function decisionsOf({ steps, asked }: RunStory): readonly (RequestedApproval & { readonly tool: string })[] {
  return asked.map((each) => {
    const calls = steps.find(({ number: step }) => step === each.step)?.reply?.calls ?? [];
    return { ...each, tool: calls.find(({ id }) => id === each.call_id)?.name ?? calls[0]?.name ?? each.call_id };
  });
}

function objects(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.map(object) : [];
}

function object(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function number(value: unknown): number {
  return typeof value === "number" ? value : 0;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
