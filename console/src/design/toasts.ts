import { Problem } from "../api/problem.ts";
import type { Tone } from "./Tag.tsx";
import { sentence } from "./sentence.ts";

interface Toast {
  readonly id: number;
  readonly tone: Tone;
  readonly text: string;
}

const LASTING = 6_000;
const BAD_LASTING = 15_000; // there is more to read, and to do
const MOST = 4;

let toasts: readonly Toast[] = [];
let last = 0;
const listeners = new Set<() => void>();

/** Say something in passing. */
export function toast(text: string, tone: Tone = "plain"): void {
  const id = ++last;
  show([...toasts, { id, tone, text }].slice(-MOST));
  setTimeout(() => dismiss(id), tone === "bad" ? BAD_LASTING : LASTING);
}

/** Say that something that was wanted failed: what, why and what next. */
export function complain(error: unknown): void {
  const { what, why, next } = Problem.from(error);
  toast([what, why, next].filter(Boolean).map(sentence).join(" "), "bad");
}

export function dismiss(id: number): void {
  show(toasts.filter((each) => each.id !== id));
}

export function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function shown(): readonly Toast[] {
  return toasts;
}

function show(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) {
    listener();
  }
}
