import { Problem } from "../api/problem.ts";
import { Words } from "../design/Words.tsx";
import { sentence } from "../design/sentence.ts";
import styles from "./Away.module.css";
import { useAway } from "./health.ts";

/** Says that the server does not answer, for as long as it does not. */
export function Away() {
  const { what, why, next } = Problem.unreachable();
  return (
    <div aria-live="assertive">
      {useAway() && (
        <p className={styles.away}>
          <strong>{sentence(what)}</strong> {sentence(why)} <Words text={next} />
        </p>
      )}
    </div>
  );
}
