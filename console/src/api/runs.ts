import type { Tone } from "../design/Tag.tsx";
import type { AgentRun } from "./schema.ts";

const TONES: Record<AgentRun["state"], Tone> = {
  done: "good",
  failed: "bad",
  cancelled: "plain",
  queued: "plain",
  running: "warn",
  waiting: "warn",
};

/** How a run is doing, at a glance. */
export function toneOf(state: AgentRun["state"]): Tone {
  return TONES[state];
}

export function hasEnded({ state }: AgentRun): boolean {
  return state === "done" || state === "failed" || state === "cancelled";
}
