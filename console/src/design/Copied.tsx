import styles from "./Copied.module.css";
import { copy } from "./clipboard.ts";

/** A command or an address that a click copies. */
export function Copied({ text }: { text: string }) {
  return (
    <button type="button" className={styles.copied} title="Copy" onClick={() => void copy(text)}>
      <code>{text}</code>
      <span className="hidden-label">, copy</span>
    </button>
  );
}
