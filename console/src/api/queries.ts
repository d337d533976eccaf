import { QueryClient, queryOptions } from "@tanstack/react-query";
import { type Given, call } from "./client.ts";
import { Problem } from "./problem.ts";
import type { Operations } from "./schema.ts";

const MOST_TRIES = 3;

/** After how many milliseconds is read again what somebody waits for, what they look at, and what is beside it. */
export const PACE = { soon: 2_000, steady: 5_000, slow: 15_000 } as const;

/** The one cache of what the server answered. */
export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: PACE.soon,
      retry: (tries, error) => tries < MOST_TRIES && Problem.from(error).isPassing,
      networkMode: "always", // a server on this machine needs no network
    },
    mutations: { networkMode: "always", retry: false },
  },
});

type Readable = Extract<keyof Operations, `GET ${string}`>;

/** An operation that reads, as the cache keeps it: by its name and what it was given. */
export function reading<Name extends Readable>(name: Name, given: Given<Name>) {
  return queryOptions({
    queryKey: [name, given] as const,
    queryFn: ({ signal }) => call(name, { ...given, signal }),
  });
}

/** Have all that is shown read again, and nothing done again: to be found counts as a use of a memory. */
export function staleReads(): Promise<void> {
  return queries.invalidateQueries({ predicate: ({ queryKey }) => !String(queryKey[0]).startsWith("POST ") });
}

/** Have all that was read by an operation read again. */
export function stale(...names: Readable[]): Promise<void> {
  return queries.invalidateQueries({ predicate: ({ queryKey }) => names.includes(queryKey[0] as Readable) });
}
