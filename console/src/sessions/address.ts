import { getRouteApi } from "@tanstack/react-router";

export const PATH = "/sessions/{-$conversation}";

/** The screen's place in the console; its address alone brings back what is shown. */
export const route = getRouteApi(PATH);

interface Listed {
  readonly q?: string | undefined;
  readonly agent?: string | undefined;
  readonly user?: string | undefined;
}

/** What an address says of the list alone: it stays, whichever session of it is opened. */
export function within({ q, agent, user }: Listed): Listed {
  return { q, agent, user };
}
