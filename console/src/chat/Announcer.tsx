import { useEffect, useRef, useState } from "react";
import type { Live } from "../live/live.ts";
import { announcement } from "./progress.ts";

/** Tells a screen reader how the answer goes on; what was there when the screen was opened is read by hand. */
export function Announcer({ live: { turns, past }, agent }: { live: Live; agent: string }) {
  const [text, setText] = useState("");
  const known = useRef<string | null>(null);
  const now = announcement(turns.slice(-1), agent);
  const isRead = past !== "none";
  useEffect(() => {
    if (isRead && known.current !== null && now !== known.current) {
      setText(now);
    }
    known.current = isRead ? now : null;
  }, [isRead, now]);
  return (
    <p className="hidden-label" role="log" aria-live="polite" aria-label="Progress">
      {text}
    </p>
  );
}
