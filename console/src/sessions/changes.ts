import { queryOptions, useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { call } from "../api/client.ts";
import { queries, stale } from "../api/queries.ts";
import type { Conversation, StateChanged } from "../api/schema.ts";

const OPERATION = "GET /api/conversations/{id}/state/changes";
const shown = new Map<string, number>(); // the revisions of conversations

/** Every change of a conversation's state; those that are known are not read again. */
export function useChanges(conversation: string) {
  return useQuery(reading(conversation));
}

/** Have read again what may be another since a conversation has another revision than it had when it was last shown. */
export function useFreshness({ id, revision }: Conversation): void {
  useEffect(() => {
    if ((shown.get(id) ?? revision) !== revision) {
      void stale("GET /api/conversations/{id}/nodes", OPERATION, "GET /api/nodes/{id}/revisions", "GET /api/runs");
    }
    shown.set(id, revision);
  }, [id, revision]);
}

function reading(conversation: string) {
  const queryKey = [OPERATION, { path: { id: conversation } }, "all"] as const;
  return queryOptions({
    queryKey,
    queryFn: async ({ signal }) => {
      const changes = [...(queries.getQueryData<readonly StateChanged[]>(queryKey) ?? [])];
      let isMore = true;
      while (isMore) {
        const since = changes.at(-1)?.revision ?? null;
        const page = await call(OPERATION, { path: { id: conversation }, query: { since }, signal });
        changes.push(...page.changes);
        isMore = page.next !== null;
      }
      return changes as readonly StateChanged[];
    },
    staleTime: Number.POSITIVE_INFINITY, // until the conversation has another revision: `useFreshness`
  });
}
