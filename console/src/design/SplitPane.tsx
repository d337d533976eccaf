import type { ReactNode } from "react";
import styles from "./SplitPane.module.css";

/** A list beside what was chosen from it; on a narrow screen one of both: the detail where there is one. */
export function SplitPane({ list, detail, label }: { list: ReactNode; detail: ReactNode | null; label: string }) {
  return (
    <div className={styles.pane} data-chosen={detail !== null}>
      <div className={styles.list}>{list}</div>
      {detail !== null && (
        <section className={styles.detail} aria-label={label}>
          {detail}
        </section>
      )}
    </div>
  );
}
