import { useEffect, useRef, useState } from "react";
import { blocks } from "../design/blocks.ts";

const PER_MILLISECOND = 40; // characters of what is drawn anew: a long piece takes longer than a short one

/** A text that grows, as often as drawing it allows. */
export function useSlowly(text: string): string {
  const [shown, setShown] = useState(text);
  const newest = useRef(text);
  newest.current = text;
  const isGrown = text !== shown && text.startsWith(shown);
  useEffect(() => {
    if (isGrown) {
      const timer = setTimeout(() => setShown(newest.current), blocks(shown).at(-1)!.length / PER_MILLISECOND);
      return () => clearTimeout(timer);
    }
    setShown(newest.current);
    return undefined;
  }, [isGrown, shown]);
  return isGrown ? shown : text;
}
