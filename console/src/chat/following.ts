import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";

const NEAR = 80; // pixels that count as the end

interface Following {
  scroller: RefObject<HTMLDivElement | null>;
  content: RefObject<HTMLDivElement | null>;
  isAtEnd: boolean;
  goToEnd: () => void;
  /** Keep what is in sight where it is, although more comes before it. */
  holdStill: () => void;
}

/** Has a list that grows stay at its end, until somebody scrolls away from it. */
export function useFollowing(): Following {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const held = useRef<number | null>(null);
  const [isAtEnd, setIsAtEnd] = useState(true);

  useLayoutEffect(() => {
    const element = scroller.current;
    if (element && held.current !== null && element.scrollHeight !== held.current) {
      element.scrollTop += element.scrollHeight - held.current;
      held.current = null;
    }
  });
  useEffect(() => {
    const element = scroller.current!;
    let before = 0;
    const look = (): void => {
      const isNear = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR;
      // It may have grown since it was at the end: only who goes up leaves that.
      follows.current = isNear || (follows.current && element.scrollTop >= before);
      before = element.scrollTop;
      setIsAtEnd(follows.current);
    };
    const grown = new ResizeObserver(() => {
      if (follows.current) {
        element.scrollTop = element.scrollHeight;
      }
      look();
    });
    grown.observe(content.current!);
    grown.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    return () => {
      grown.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, []);

  return {
    scroller,
    content,
    isAtEnd,
    goToEnd: () => scroller.current?.scrollTo({ top: scroller.current.scrollHeight }),
    holdStill: () => {
      held.current = scroller.current?.scrollHeight ?? null;
    },
  };
}
