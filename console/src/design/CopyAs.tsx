import { useId } from "react";
import { Button } from "./Button.tsx";
import styles from "./CopyAs.module.css";
import { copy } from "./clipboard.ts";

/** The same thing said to the command line, to curl and in Python. */
export interface Ways {
  readonly cli: string;
  readonly curl: string;
  readonly python: string;
}

const NAMES = { cli: "Command line", curl: "curl", python: "Python" } as const;

/** A menu that copies what the screen shows as a command. */
export function CopyAs({ ways }: { ways: Ways }) {
  const id = useId();
  return (
    <>
      <Button kind="quiet" popoverTarget={id}>
        Copy as …
      </Button>
      <div id={id} popover="auto" className={styles.menu} role="group" aria-label="Copy as a command">
        {(Object.keys(NAMES) as (keyof Ways)[]).map((way) => (
          <section key={way} className={styles.way} aria-label={NAMES[way]}>
            <header>
              <h2>{NAMES[way]}</h2>
              <Button
                popoverTarget={id}
                popoverTargetAction="hide"
                aria-label={`Copy as ${NAMES[way]}`}
                onClick={() => void copy(ways[way])}
              >
                Copy
              </Button>
            </header>
            <pre tabIndex={0}>{ways[way]}</pre>
          </section>
        ))}
      </div>
    </>
  );
}
