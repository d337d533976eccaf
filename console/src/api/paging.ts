import { infiniteQueryOptions } from "@tanstack/react-query";
import { type Given, call } from "./client.ts";
import type { Operations } from "./schema.ts";

type Paged =
  | "GET /api/conversations"
  | "GET /api/conversations/search"
  | "GET /api/memories"
  | "GET /api/memories/owners"
  | "GET /api/runs";

/** What is known of a list that is read page by page. */
export interface Pages {
  readonly hasNextPage: boolean;
  readonly isFetching: boolean;
  readonly isError: boolean;
  readonly error: unknown;
  readonly fetchNextPage: () => unknown;
}

/** An operation that answers in pages, each with the cursor of the next. */
export function paging<Name extends Paged>(name: Name, query: Operations[Name]["query"]) {
  return infiniteQueryOptions({
    queryKey: [name, { query }, "pages"] as const,
    queryFn: ({ pageParam, signal }) =>
      call(name, { query: { ...query, cursor: pageParam }, signal } as unknown as Given<Name>),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.cursor,
  });
}
