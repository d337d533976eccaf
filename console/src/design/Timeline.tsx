import { type ReactNode, useState } from "react";
import { figure } from "./figures.ts";
import styles from "./Timeline.module.css";

const FORTH = ["ArrowRight", "ArrowUp", "PageUp", "End"];

interface Props {
  /** What one moves along: "Event". */
  label: string;
  last: number;
  at: number;
  move: (to: number) => void;
  /** What can be done at this place. */
  children?: ReactNode;
}

/** A way along numbered steps from 0 to the last: by a slider, or to a number. */
export function Timeline({ label, last, at, move, children }: Props) {
  const [written, setWritten] = useState<string>(); // while somebody writes a number, it may be none yet
  const go = (to: number): void => {
    if (Number.isSafeInteger(to)) {
      move(Math.min(last, Math.max(0, to)));
    }
  };
  return (
    <div className={styles.timeline}>
      <input
        className={styles.slider}
        type="range"
        min={0}
        max={last}
        value={at}
        aria-label={`${label} slider`}
        aria-valuetext={`${label} ${at} of ${last}`}
        onChange={({ target }) => go(target.valueAsNumber)}
        // Who is shown the last without having come here comes to it all the same: for the slider nothing changes.
        onPointerUp={() => go(at)}
        onKeyDown={({ key }) => at === last && FORTH.includes(key) && go(last)}
      />
      <label className={styles.number}>
        {label}
        <input
          type="number"
          min={0}
          max={last}
          value={written ?? at}
          onChange={({ target }) => {
            setWritten(target.value);
            go(target.valueAsNumber);
          }}
          onBlur={() => setWritten(undefined)}
        />
        of {figure(last)}
      </label>
      {children}
    </div>
  );
}
