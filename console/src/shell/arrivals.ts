import { useRouter } from "@tanstack/react-router";
import { type RefObject, useEffect } from "react";
import { root } from "../api/root.ts";
import { visited } from "./visits.ts";

let isAwaited = false;

/** Notice when another screen is gone to, for its heading. */
export function useArrivals(): void {
  const router = useRouter();
  useEffect(() => {
    visited(screenOf(router.state.location.pathname));
    return router.subscribe("onBeforeNavigate", ({ fromLocation, toLocation }) => {
      const screen = screenOf(toLocation.pathname);
      visited(screen);
      if (fromLocation && screenOf(fromLocation.pathname) !== screen) {
        isAwaited = true;
      }
    });
  }, [router]);
}

/** Have the heading of a screen that was gone to get the focus: so it is read out, and Tab goes on from there. */
export function useHeading(heading: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    if (isAwaited) {
      isAwaited = false;
      heading.current?.focus({ preventScroll: true });
    }
  }, [heading]);
}

/** The first word of a path; home has none. */
function screenOf(path: string): string {
  return path.slice(root.length).split("/")[1] ?? "";
}
