import type { Tone } from "../design/Tag.tsx";
import type { Run } from "./schema.ts";

const TONES: Record<Run["state"], Tone> = {
  done: "good",
  failed: "bad",
  cancelled: "plain",
  queued: "plain",
  running: "warn",
  waiting: "warn",
};

/** How a run is doing, at a glance. */
export function toneOf(state: Run["state"]): Tone {
  return TONES[state];
}

export function hasEnded({ state }: Run): boolean {
  return state === "done" || state === "failed" || state === "cancelled";
}
