import { Link } from "@tanstack/react-router";
import { useId } from "react";
import type { Me } from "../api/schema.ts";
import { Health } from "./Health.tsx";
import { Icon } from "./Icon.tsx";
import { Person } from "./Person.tsx";
import styles from "./Rail.module.css";
import { SCREENS } from "./screens.ts";

/** The ways to the screens; on a narrow one a bar at the bottom, with the rest in a menu. */
export function Rail({ me, help }: { me: Me | undefined; help: () => void }) {
  const id = useId();
  return (
    <nav className={styles.rail} aria-label="Screens">
      <Link to="/" className={styles.brand} tabIndex={-1} aria-hidden="true">
        <svg viewBox="0 0 32 32" width="1.6em" height="1.6em">
          <rect width="32" height="32" rx="7" />
          <path d="M10 7v18M22 7v18M10 16h12" />
        </svg>
        Holdfast
      </Link>
      {SCREENS.map(({ to, params, name, key, icon }) => (
        <Link
          key={to}
          to={to}
          params={params}
          className={styles.link}
          activeOptions={{ exact: to === "/", includeSearch: false }}
          aria-keyshortcuts={key}
        >
          <Icon name={icon} />
          <span>{name}</span>
        </Link>
      ))}
      <button type="button" className={`${styles.link} ${styles.more}`} popoverTarget={id}>
        <Icon name="more" />
        <span>More</span>
      </button>
      <div id={id} popover="auto" className={styles.rest}>
        <Health />
        {me && <Person me={me} help={help} />}
      </div>
    </nav>
  );
}
