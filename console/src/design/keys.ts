import { useEffect, useRef } from "react";
import { keep, kept } from "./kept.ts";

type Keys = Readonly<Record<string, (event: KeyboardEvent) => void>>;

const STORED = "holdfast.keys";
const OFF = "off";

/** What single keys do on a screen; they are letters where somebody writes, and may be switched off. */
export function useKeys(keys: Keys): void {
  const current = useRef(keys);
  current.current = keys;
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const act = current.current[event.key];
      if (act && isAlone(event) && !isWriting(event) && (keysWork() || event.key === "?")) {
        event.preventDefault();
        act(event);
      }
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
}

/** Whether single keys do anything: who speaks to the computer, or shakes, may not want that. */
export function keysWork(): boolean {
  return kept(STORED) !== OFF;
}

export function switchKeys(on: boolean): void {
  keep(STORED, on ? null : OFF);
}

function isAlone(event: KeyboardEvent): boolean {
  return !event.defaultPrevented && !event.ctrlKey && !event.metaKey && !event.altKey;
}

function isWriting({ target }: KeyboardEvent): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || target.closest("input, textarea, select, dialog") !== null)
  );
}
