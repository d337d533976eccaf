import { getRouteApi } from "@tanstack/react-router";
import type { Holder } from "./holders.ts";

export const PATH = "/memory/{-$memory}";

/** The screen's place in the console; its address alone brings back what is shown. */
export const route = getRouteApi(PATH);

/** An owner as an address names it. */
export function searchOf({ scope, name }: Holder) {
  return { scope, name: name ?? undefined };
}
