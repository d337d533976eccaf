import type { ReactNode } from "react";
import styles from "./Facts.module.css";

/** What is known of something, by name; what is not known, or not so, is left out. */
export function Facts({ of }: { of: Readonly<Record<string, ReactNode>> }) {
  return (
    <dl className={styles.facts}>
      {Object.entries(of).map(
        ([name, value]) =>
          value != null &&
          value !== false &&
          value !== "" && (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
