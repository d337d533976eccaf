import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { PACE, reading, staleReads } from "../api/queries.ts";
import type { Readiness } from "../api/schema.ts";
import { toast } from "../design/toasts.ts";

const EVERY = 10_000;

/** How the engine does, looked at every few seconds; with an error, it does not answer. */
export function useHealth() {
  return useQuery({
    ...reading("GET /readyz", {}),
    retry: false, // it is asked again soon
    refetchOnWindowFocus: "always",
    refetchInterval: ({ state }) => (state.status === "error" ? PACE.soon : EVERY),
  });
}

/** Whether the engine is away; when it is back, all that is shown is read anew. */
export function useAway(): boolean {
  const { isError } = useHealth();
  const was = useRef(false);
  useEffect(() => {
    if (was.current && !isError) {
      toast("The server is reachable again.", "good");
      document.dispatchEvent(new Event("holdfast:back")); // for who waits to connect again
      void staleReads();
    }
    was.current = isError;
  }, [isError]);
  return isError;
}

/** How it does, in a word or two. */
export function inWords(health: Readiness | undefined, away: boolean): string {
  if (away) {
    return "Server unreachable";
  }
  switch (health?.state) {
    case undefined:
      return "Checking …";
    case "ok":
      return "Healthy";
    case "reduced":
      return "Degraded";
    case "down":
      return "Down";
  }
}
