import { useInfiniteQuery } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { Button } from "../design/Button.tsx";
import styles from "./MissingOne.module.css";
import { route } from "./address.ts";
import type { Holder } from "./holders.ts";
import { listing } from "./queries.ts";

const ID = "\\s*[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\\s*";
const BEGINNING = 80;

/** Asks why a memory is not among those that answer: one that is picked by its words, or any by its id. */
export function MissingOne({ holder, shown }: { holder: Holder; shown: readonly string[] }) {
  const navigate = route.useNavigate();
  const [isOpen, setIsOpen] = useState(false);
  const [sought, setSought] = useState("");
  const known = useInfiniteQuery({ ...listing(holder, true), enabled: isOpen });
  const id = useId();
  const choices =
    known.data?.pages.flatMap(({ memories }) => memories).filter((each) => !shown.includes(each.id)) ?? [];
  const ask = (event: FormEvent): void => {
    event.preventDefault();
    void navigate({ params: { memory: sought.trim() }, search: (now) => now });
  };
  return (
    <details className={styles.missing} onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
      <summary>Why is a memory not here?</summary>
      <form className={styles.form} onSubmit={ask}>
        <label htmlFor={`${id}-sought`}>Type some words of the memory and select it, or paste its id</label>
        <div className={styles.line}>
          <input
            id={`${id}-sought`}
            list={`${id}-known`}
            required
            pattern={ID}
            title="Id of a memory"
            autoComplete="off"
            value={sought}
            onChange={({ target }) => setSought(target.value)}
          />
          <datalist id={`${id}-known`}>
            {choices.map((each) => (
              <option key={each.id} value={each.id} label={each.content.slice(0, BEGINNING)} />
            ))}
          </datalist>
          <Button type="submit">Explain</Button>
        </div>
      </form>
    </details>
  );
}
