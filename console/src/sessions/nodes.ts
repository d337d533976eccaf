import { useQueries } from "@tanstack/react-query";
import { useEffect } from "react";
import { queries, reading } from "../api/queries.ts";
import type { Node } from "../api/schema.ts";
import { useThrottled } from "./throttle.ts";
import { SIZE, askedFor, isFar, windowOf, windowsBetween } from "./windows.ts";

const OPERATION = "GET /api/conversations/{id}/nodes";

/** The nodes of the windows from one to another, as far as they were read. */
export function useNodes(conversation: string, from: number, to: number) {
  const first = useThrottled(from);
  const last = Math.max(first, useThrottled(to));
  const read = useQueries({
    queries: windowsBetween(first, last).map((window) => ({
      ...reading(OPERATION, { path: { id: conversation }, query: askedFor(window) }),
      staleTime: Number.POSITIVE_INFINITY, // until the conversation has another revision: `useFreshness`
    })),
  });
  const failed = read.find(({ data, error }) => data === undefined && error !== null);
  return {
    node: (seq: number): Node | undefined => read[windowOf(seq) - first]?.data?.nodes[(seq - 1) % SIZE],
    error: failed?.error ?? null,
    retry: () => void failed?.refetch(),
  };
}

/** Forget nodes that were read and are far from those in sight: a conversation may have more than a page can hold. */
export function useForgetting(first: number, last: number): void {
  useEffect(() => {
    queries.removeQueries({
      type: "inactive",
      predicate: ({ queryKey: [name, given] }) => name === OPERATION && isFar(sinceOf(given), first, last),
    });
  }, [first, last]);
}

function sinceOf(given: unknown): number {
  return (given as { query: { since: number } }).query.since;
}
