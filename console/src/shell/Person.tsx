import { useId } from "react";
import { root } from "../api/root.ts";
import type { Me } from "../api/schema.ts";
import { Icon } from "./Icon.tsx";
import styles from "./Person.module.css";
import { type Choice, useTheme } from "./theme.ts";

const CHOICES: Record<Choice, string> = { system: "System", light: "Light", dark: "Dark" };

/** Who is signed in, and what is theirs to choose. */
export function Person({ me, help }: { me: Me; help: () => void }) {
  const [choice, choose] = useTheme();
  const id = useId();
  return (
    <div className={styles.person}>
      <p className={styles.name} title={`Signed in as ${me.user}, tenant ${me.tenant}`}>
        <span className="hidden-label">Signed in as </span>
        {me.user}
        {me.tenant !== "default" && <small> at {me.tenant}</small>}
      </p>
      <label className={styles.item} htmlFor={id}>
        <Icon name="theme" />
        <span className="hidden-label">Theme</span>
        <select
          id={id}
          className={styles.choice}
          value={choice}
          onChange={({ target }) => choose(target.value as Choice)}
        >
          {Object.entries(CHOICES).map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <button type="button" className={styles.item} onClick={help} aria-keyshortcuts="?">
        <Icon name="keys" />
        Shortcuts
      </button>
      {!me.local && (
        <form method="post" action={`${root}/logout`}>
          <button type="submit" className={styles.item}>
            <Icon name="leave" />
            Sign out
          </button>
        </form>
      )}
    </div>
  );
}
