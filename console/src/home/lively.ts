import { PACE } from "../api/queries.ts";

/** How what home shows is read: anew whenever it is opened, and now and then while it is. */
export const lively = { refetchOnMount: "always", refetchInterval: PACE.slow } as const;

/** The same for what is asked for only until it is there. */
export function until<Data>(isThere: (data: Data) => boolean) {
  return {
    refetchOnMount: "always",
    refetchInterval: ({ state: { data } }: { state: { data: Data | undefined } }) =>
      data !== undefined && isThere(data) ? false : PACE.slow,
  } as const;
}
