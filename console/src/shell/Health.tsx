import { Link } from "@tanstack/react-router";
import styles from "./Health.module.css";
import { inWords, useHealth } from "./health.ts";

/** How the engine does, at a glance; the way to what there is to know. */
export function Health() {
  const { data, isError } = useHealth();
  return (
    <Link to="/" hash="health" className={styles.health}>
      <span className={styles.dot} data-state={isError ? "away" : (data?.state ?? "unknown")} aria-hidden="true" />
      {inWords(data, isError)}
    </Link>
  );
}
