import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ErrorState, Loading } from "./States.tsx";

interface Props<Data> {
  query: UseQueryResult<Data>;
  what: string;
  children: (data: Data) => ReactNode;
}

/** What was read, once it is there; what was read last is shown for as long as it cannot be read again. */
export function Read<Data>({ query, what, children }: Props<Data>) {
  if (query.data !== undefined) {
    return children(query.data);
  }
  return query.error ? <ErrorState error={query.error} retry={() => void query.refetch()} /> : <Loading what={what} />;
}
