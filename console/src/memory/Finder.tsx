import { type FormEvent, useEffect, useRef } from "react";
import { Button } from "../design/Button.tsx";
import styles from "./Finder.module.css";
import { HOLDERS } from "./Holders.tsx";
import { route, searchOf } from "./address.ts";
import { type Holder, told } from "./holders.ts";
import { changed } from "./queries.ts";

/** Whose memories are shown, and what to search for among them. */
export function Finder({ holder }: { holder: Holder }) {
  const { q, past } = route.useSearch();
  const navigate = route.useNavigate();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (field.current) {
      field.current.value = q ?? ""; // the address may change by itself: back, a link
    }
  }, [q]);
  const search = (event: FormEvent): void => {
    event.preventDefault();
    field.current?.blur(); // so that `j` goes to what is found
    const sought = field.current?.value.trim() || undefined;
    if (sought === q) {
      void changed(); // asked again: what answers may have changed
    }
    void navigate({ params: { memory: undefined }, search: { ...searchOf(holder), past, q: sought } });
  };
  return (
    <search className={styles.finder}>
      <Button className={styles.whose} popoverTarget={HOLDERS}>
        Memories of {told(holder)} ▾
      </Button>
      <form className={styles.form} onSubmit={search}>
        <input
          ref={field}
          type="search"
          aria-label={`Search the memories of ${told(holder)}`}
          placeholder="Search as an agent would"
          defaultValue={q}
          maxLength={20_000}
        />
        <Button type="submit">Search</Button>
      </form>
      {q === undefined && (
        <label className={styles.past}>
          <input
            type="checkbox"
            checked={past ?? false}
            onChange={({ target }) =>
              void navigate({ search: (now) => ({ ...now, past: target.checked || undefined }), replace: true })
            }
          />
          include past memories
        </label>
      )}
    </search>
  );
}
