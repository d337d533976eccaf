import { useEffect, useRef, useState } from "react";

const EVERY = 100; // milliseconds

/** A number that changes only so often, and in the end is what was given last: what it asks for is asked for less. */
export function useThrottled(value: number): number {
  const [shown, setShown] = useState(value);
  const changed = useRef(0);
  useEffect(() => {
    const change = (): void => {
      changed.current = performance.now();
      setShown(value);
    };
    const timer = setTimeout(change, changed.current + EVERY - performance.now());
    return () => clearTimeout(timer);
  }, [value]);
  return shown;
}
