import styles from "./Cards.module.css";
import { beginning, isLong, readable } from "./data.ts";

/** Arguments or a result, in full; what is long is folded. */
export function Data({ value, label }: { value: unknown; label: string }) {
  const text = readable(value);
  if (text === "" || text === "{}") {
    return <p className={styles.nothing}>{label}: none</p>;
  }
  if (!isLong(text)) {
    return <pre aria-label={label}>{text}</pre>;
  }
  return (
    <details>
      <summary>
        {label}, {text.length.toLocaleString("en")} characters: <code>{beginning(text)} …</code>
      </summary>
      <pre aria-label={label} tabIndex={0}>
        {text}
      </pre>
    </details>
  );
}
