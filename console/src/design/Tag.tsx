import type { ReactNode } from "react";
import styles from "./Tag.module.css";

export type Tone = "plain" | "good" | "warn" | "bad";

/** A word or two on how something is. */
export function Tag({ tone = "plain", children }: { tone?: Tone; children: ReactNode }) {
  return <span className={`${styles.tag} ${styles[tone]}`}>{children}</span>;
}
