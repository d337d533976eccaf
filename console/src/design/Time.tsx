import { useSyncExternalStore } from "react";
import { ticked, onTick } from "./clock.ts";
import { ago, exactly } from "./time.ts";

/** A moment: how long ago it was, for as long as one looks, and when exactly to whoever points at it. */
export function Time({ at }: { at: string }) {
  useSyncExternalStore(onTick, ticked);
  return (
    <time dateTime={at} title={exactly(at)}>
      {ago(at)}
    </time>
  );
}
