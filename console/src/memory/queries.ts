import { queryOptions } from "@tanstack/react-query";
import { call } from "../api/client.ts";
import { paging } from "../api/paging.ts";
import { queries } from "../api/queries.ts";
import type { Holder, Scope } from "./holders.ts";

/** An owner's memories, the newest first. */
export function listing(holder: Holder, alsoPast: boolean) {
  return paging("GET /api/memories", { ...holder, also_past: alsoPast, limit: 100 });
}

/** Who has memories in a scope. */
export function holdersIn(scope: Scope) {
  return paging("GET /api/memories/owners", { scope, limit: 50 });
}

/** What answers a question: as many as agents are told, or up to a limit. */
export function searching(holder: Holder, question: string, limit: number | null = null) {
  const body = { owner: holder, query: question, limit, explain: true };
  return queryOptions({
    queryKey: ["POST /api/memories/search", body] as const,
    queryFn: ({ signal }) => call("POST /api/memories/search", { body, signal }),
    ...onceAsked,
  });
}

/** Why a memory does not answer a question, or that it does. */
export function absence(id: string, holder: Holder, question: string) {
  const body = { id, owner: holder, query: question };
  return queryOptions({
    queryKey: ["POST /api/memories/why-not", body] as const,
    queryFn: ({ signal }) => call("POST /api/memories/why-not", { body, signal }),
    ...onceAsked,
  });
}

/** Have all that is shown of memories read again. */
export function changed(): Promise<void> {
  return queries.invalidateQueries({ predicate: ({ queryKey }) => String(queryKey[0]).includes(" /api/memories") });
}

// To be found counts as a use, from which a memory fades more slowly: nothing is searched for without somebody asking.
const onceAsked = {
  staleTime: Number.POSITIVE_INFINITY,
  refetchOnWindowFocus: false,
  refetchOnReconnect: false,
} as const;
