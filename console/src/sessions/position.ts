import { useEffect, useState } from "react";

const RESTING = 150; // milliseconds

/**
 * The event that one is at, and how to move.
 *
 * A move is seen at once, and is in the address when one rests: browsers let a page change it only so often.
 */
export function usePosition(
  at: number | undefined,
  arrive: (at: number) => void,
): [number | undefined, (to: number) => void] {
  const [moved, setMoved] = useState<{ to: number; from: number | undefined }>();
  const to = moved?.from === at ? moved?.to : undefined; // what the address says since counts more
  useEffect(() => {
    if (to === undefined) {
      return;
    }
    const timer = setTimeout(() => arrive(to), RESTING);
    return () => clearTimeout(timer);
  }, [to, arrive]);
  return [to ?? at, (next) => setMoved({ to: next, from: at })];
}
