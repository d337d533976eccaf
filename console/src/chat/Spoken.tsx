import styles from "./Turn.module.css";
import { beginning } from "./data.ts";
import { figure } from "../design/figures.ts";

const FOLDED = 5_000; // characters

/** What a person said, as they wrote it; what would fill many screens is folded. */
export function Spoken({ text }: { text: string }) {
  if (text.length <= FOLDED) {
    return <p className={styles.bubble}>{text}</p>;
  }
  return (
    <details className={styles.bubble}>
      <summary>
        {beginning(text)} … ({figure(text.length)} characters)
      </summary>
      {text}
    </details>
  );
}
