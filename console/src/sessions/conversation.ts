import { queryOptions, skipToken, useQuery } from "@tanstack/react-query";
import { call } from "../api/client.ts";
import { Problem } from "../api/problem.ts";
import { PACE } from "../api/queries.ts";
import type { Conversation } from "../api/schema.ts";

const OPERATION = "GET /api/conversations/{id}";
const ID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** The conversation that an address names, by its id or its session's, kept up to date while one looks. */
export function useConversation(named: string | undefined) {
  return useQuery(
    queryOptions({
      queryKey: [OPERATION, { path: { id: named } }, "named"],
      queryFn: named === undefined ? skipToken : ({ signal }) => find(named, signal),
      refetchInterval: ({ state }) => (isMissing(state.error) ? false : PACE.steady),
    }),
  );
}

async function find(named: string, signal: AbortSignal): Promise<Conversation> {
  if (!ID.test(named)) {
    return bySession(named, signal);
  }
  try {
    return await call(OPERATION, { path: { id: named }, signal });
  } catch (error) {
    // A session may have an id of the same form.
    if (!isMissing(error)) {
      throw error;
    }
    return bySession(named, signal);
  }
}

function bySession(session_id: string, signal: AbortSignal): Promise<Conversation> {
  return call("GET /api/conversations/by-session", { query: { session_id }, signal });
}

/** Whether an error says that there is no such conversation, or not any more. */
export function isMissing(error: unknown): boolean {
  return Problem.from(error).status === 404;
}
