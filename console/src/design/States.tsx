import type { ReactNode } from "react";
import { Problem } from "../api/problem.ts";
import { Button } from "./Button.tsx";
import styles from "./States.module.css";
import { Words } from "./Words.tsx";
import { sentence } from "./sentence.ts";

/** Nothing is here yet, and what to do about it. */
export function EmptyState({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className={styles.state}>
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** What went wrong, why, and what next. */
export function ErrorState({ error, retry }: { error: unknown; retry?: (() => void) | undefined }) {
  const problem = Problem.from(error);
  return (
    <div className={`${styles.state} ${styles.error}`} role="alert">
      <h2>
        <Words text={sentence(problem.what)} />
      </h2>
      {problem.why && (
        <p>
          <Words text={sentence(problem.why)} />
        </p>
      )}
      {problem.next && (
        <p>
          <Words text={sentence(problem.next)} />
        </p>
      )}
      {retry && <Button onClick={retry}>Try again</Button>}
    </div>
  );
}

/** Something is on its way; said after a moment only, since mostly it is there by then. */
export function Loading({ what }: { what: string }) {
  return (
    <p className={styles.loading} role="status">
      Loading {what} …
    </p>
  );
}
