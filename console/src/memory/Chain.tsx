import { Link } from "@tanstack/react-router";
import type { Memory } from "../api/schema.ts";
import { ErrorState } from "../design/States.tsx";
import { Time } from "../design/Time.tsx";
import styles from "./Chain.module.css";
import { PATH } from "./address.ts";

interface Props {
  links: readonly Memory[];
  error: Error | null;
  chosen: string;
}

/** What took whose place, the oldest first; of a memory that stands alone nothing is shown. */
export function Chain({ links, error, chosen }: Props) {
  if (error && links.length === 0) {
    return <ErrorState error={error} />;
  }
  if (links.length < 2) {
    return null;
  }
  return (
    <section>
      <h2>Supersession</h2>
      <ol className={styles.chain}>
        {links.map((link) => (
          <li key={link.id} aria-current={link.id === chosen || undefined}>
            {link.id === chosen ? (
              <strong>{link.content}</strong>
            ) : (
              <Link to={PATH} params={{ memory: link.id }} search={(now) => now}>
                {link.content}
              </Link>
            )}
            <span className={styles.span}>
              {link.valid_to ? (
                <>
                  until <Time at={link.valid_to} />
                </>
              ) : (
                <>
                  since <Time at={link.valid_from} />
                </>
              )}
              {link.id === chosen && ", this memory"}
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}
