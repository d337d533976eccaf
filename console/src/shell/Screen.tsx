import { type ReactNode, useRef } from "react";
import { CopyAs, type Ways } from "../design/CopyAs.tsx";
import styles from "./Screen.module.css";
import { useHeading } from "./arrivals.ts";
import { useTitle } from "./title.ts";

interface Props {
  title: string;
  /** What the screen shows, said to the command line, curl and Python. */
  ways: Ways;
  actions?: ReactNode;
  children: ReactNode;
  /** Whether the screen lays out its own panes, and scrolls in them. */
  panes?: boolean;
}

/** One screen: its name, what can be done with all of it, and its content. */
export function Screen({ title, ways, actions, children, panes = false }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  useHeading(heading);
  useTitle(title);
  return (
    <div className={styles.screen}>
      <header className={styles.header}>
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        <div className={styles.actions}>
          {actions}
          <CopyAs ways={ways} />
        </div>
      </header>
      <div className={panes ? styles.panes : styles.page}>{children}</div>
    </div>
  );
}
