import { call } from "./client.ts";
import type { RunStory } from "./schema.ts";

/** A run with all of its steps, however many pages they take. */
export async function wholeRun(id: string, signal: AbortSignal): Promise<RunStory> {
  let whole = await call("GET /api/runs/{id}", { path: { id }, signal });
  while (whole.cursor !== null) {
    const more = await call("GET /api/runs/{id}", { path: { id }, query: { since: whole.cursor }, signal });
    whole = {
      ...more,
      steps: [...whole.steps, ...more.steps],
      executions: [...whole.executions, ...more.executions],
      asked: [...whole.asked, ...more.asked],
    };
  }
  return whole;
}
