import type { Attempt, Turn } from "../live/turns.ts";

/** The run of the newest answer, or of what is to be one. */
export function newestRun(turns: readonly Turn[]): string | null {
  return attemptsOf(turns).findLast(({ run, state }) => run !== null && state !== "queued")?.run ?? null;
}

/** The runs that go on, or will. */
export function unfinished(turns: readonly Turn[]): readonly string[] {
  const running = attemptsOf(turns).filter(
    ({ state }) => state === "running" || state === "waiting" || state === "queued",
  );
  return running.flatMap(({ run }) => run ?? []);
}

/** What changes whenever there is more to tell of a run; what a tool gave is told with the step after it. */
export function newsOf(turns: readonly Turn[], run: string | null): string {
  const attempt = attemptsOf(turns).find((each) => each.run === run);
  if (attempt === undefined) {
    return "";
  }
  return [attempt.state, attempt.cards.length, attempt.answers.length].join(" ");
}

/** What somebody who does not see the screen is told of how an answer goes on. */
export function announcement(turns: readonly Turn[], agent: string): string {
  const attempt = attemptsOf(turns).at(-1);
  switch (attempt?.state) {
    case "running":
      return `${agent} is working.`;
    case "waiting":
      return `${agent} asks for approval of a tool call.`;
    case "failed":
      return `${agent} could not answer.`;
    case "cancelled":
      return "Stopped.";
    case "done":
      return `${agent} says: ${attempt.answers.at(-1)?.text ?? ""}`;
    default:
      return "";
  }
}

function attemptsOf(turns: readonly Turn[]): readonly Attempt[] {
  return turns.flatMap(({ attempts }) => attempts);
}
