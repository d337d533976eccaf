import { useSyncExternalStore } from "react";
import styles from "./Toasts.module.css";
import { Words } from "./Words.tsx";
import { dismiss, shown, subscribe } from "./toasts.ts";

/** Where passing words appear, and are read out. */
export function Toasts() {
  const toasts = useSyncExternalStore(subscribe, shown);
  return (
    <div className={styles.region} role="status" aria-live="polite">
      {toasts.map(({ id, tone, text }) => (
        <button
          key={id}
          type="button"
          className={styles.toast}
          data-tone={tone}
          title="Dismiss"
          onClick={() => dismiss(id)}
        >
          <Words text={text} />
        </button>
      ))}
    </div>
  );
}
