import { queryOptions, useQuery } from "@tanstack/react-query";
import { createContext, useContext, useEffect } from "react";
import { onAccessEnded } from "../api/access.ts";
import { call } from "../api/client.ts";
import { Problem } from "../api/problem.ts";
import { PACE, queries } from "../api/queries.ts";
import type { Me } from "../api/schema.ts";
import { speakFor } from "../design/commands.ts";

const KEY = ["who is signed in"] as const;
const tabs = new BroadcastChannel("holdfast.identity");
const NOBODY = "null";
const EVERY = 60_000;

let last: string | undefined; // whose answers are kept

const identity = queryOptions({
  queryKey: KEY,
  queryFn: async ({ signal }) => {
    const me = await ask(signal);
    const who = JSON.stringify(me);
    if (last !== undefined && last !== who) {
      forget(); // before anything of the next one is read
    }
    last = who;
    if (me !== null) {
      speakFor({ origin: location.origin, local: me.local, tenant: me.tenant });
    }
    return me;
  },
  refetchInterval: ({ state }) => (state.status === "error" ? PACE.soon : EVERY),
});

onAccessEnded(() => queries.setQueryData(KEY, null));
tabs.addEventListener("message", () => void queries.invalidateQueries({ queryKey: KEY }));
addEventListener("pageshow", ({ persisted }) => {
  if (persisted) {
    void queries.resetQueries({ queryKey: KEY }); // the browser kept the page as it was, for whoever comes back
  }
});

/** Whom the screens are shown to. */
export const Signed = createContext<Me | null>(null);

/** Who is signed in; on a screen there is somebody. */
export function useMe(): Me {
  return useContext(Signed)!;
}

export function useIsAdmin(): boolean {
  return useMe().scopes.includes("admin");
}

/** Who is signed in: null is nobody. What was read for one is never shown to another, and all tabs agree. */
export function useIdentity() {
  const found = useQuery(identity);
  const who = found.data === undefined ? undefined : JSON.stringify(found.data);

  useEffect(() => {
    if (who === NOBODY) {
      forget(); // no screen is left that would read it again
    }
    if (who !== undefined) {
      tabs.postMessage("changed");
    }
  }, [who]);

  return { ...found, who };
}

async function ask(signal: AbortSignal): Promise<Me | null> {
  try {
    return await call("GET /api/me", { signal });
  } catch (error) {
    if (Problem.from(error).isSignedOut) {
      return null;
    }
    throw error;
  }
}

function forget(): void {
  queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== KEY[0] });
}
