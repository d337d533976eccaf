import type { Event } from "../api/schema.ts";

export const PROTOCOL = "holdfast.v1+json";

/** The first frame of a socket: where it is. */
export interface Ready {
  readonly kind: "ready";
  readonly session_id: string;
  readonly conversation_id: string;
  readonly agent: string;
  readonly cursor: string;
}

/** A message is stored, and will be answered by this run. */
export interface Sent {
  readonly kind: "sent";
  readonly run_id: string;
  readonly node_id: string;
  readonly key?: string;
}

/** No process serves the agent: the message is stored, and this run answers it when one does. */
export interface Queued {
  readonly kind: "queued";
  readonly run_id: string;
  readonly text: string;
}

/** A frame was not taken; nothing came of it. */
export interface Refused {
  readonly kind: "refused";
  readonly code: string;
  readonly message: string;
  readonly next?: string;
  readonly key?: string;
}

export type Frame = Event | Ready | Sent | Queued | Refused | { readonly kind: "pong" };

/** What the server said; null where a newer one speaks of what this page does not know. */
export function readFrame(text: unknown): Frame | null {
  try {
    const frame = JSON.parse(String(text)) as Frame | null;
    return typeof frame?.kind === "string" ? frame : null;
  } catch {
    return null;
  }
}

/** A message as it is said to the server; the same key twice is said once. */
export function said(text: string, key: string): string {
  return JSON.stringify({ type: "message", text, key });
}

export const PING = JSON.stringify({ type: "ping" });
