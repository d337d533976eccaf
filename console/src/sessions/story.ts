import { type Context, contextOf } from "../api/context.ts";
import type { RunStory, RunStep } from "../api/schema.ts";

/** A message that the model was sent. */
export interface Message {
  readonly role: string;
  readonly content: unknown;
}

/** One step with all that belongs to it. */
export interface Told {
  readonly step: RunStep;
  readonly context: Context;
  readonly messages: readonly Message[];
  readonly executions: RunStory["executions"];
  readonly asked: RunStory["asked"];
}

/** A run as a person reads it, step by step. */
export function told({ steps, executions, asked }: RunStory): Told[] {
  return steps.map((step) => ({
    step,
    context: contextOf(step),
    messages: messagesOf(step),
    executions: executions.filter((each) => each.step === step.number),
    asked: asked.filter((each) => each.step === step.number),
  }));
}

function messagesOf({ sent }: RunStep): Message[] {
  const messages: unknown = sent["messages"];
  return Array.isArray(messages) ? messages.map(({ role, content }) => ({ role: String(role), content })) : [];
}
