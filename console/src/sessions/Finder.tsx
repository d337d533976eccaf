import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { reading } from "../api/queries.ts";
import { Button } from "../design/Button.tsx";
import { useIsAdmin } from "../shell/identity.ts";
import styles from "./Finder.module.css";
import { route } from "./address.ts";

const RESTING = 300; // milliseconds after the last letter

/** What to search for, and whose sessions are shown. */
export function Finder() {
  const isAdmin = useIsAdmin();
  const { q, agent, user } = route.useSearch();
  const navigate = route.useNavigate();
  const agents = useQuery(reading("GET /api/agents", {}));
  const names = new Set([...(agents.data?.agents ?? []).map(({ name }) => name), ...(agent ? [agent] : [])]);
  return (
    <search className={styles.finder}>
      <Words
        said={q ?? ""}
        say={(text) => void navigate({ search: (now) => ({ ...now, q: text || undefined }), replace: true })}
      />
      <select
        className={styles.agents}
        aria-label="Agent"
        value={agent ?? ""}
        onChange={({ target }) =>
          void navigate({ search: (now) => ({ ...now, agent: target.value || undefined }), replace: true })
        }
      >
        <option value="">All agents</option>
        {[...names].sort().map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      {isAdmin && user !== undefined && (
        <Button
          className={styles.user}
          onClick={() => void navigate({ search: (now) => ({ ...now, user: undefined }), replace: true })}
        >
          Only {user}: show all users
        </Button>
      )}
    </search>
  );
}

/** A field whose words are searched for when one rests, or at once with Enter. */
function Words({ said, say }: { said: string; say: (text: string) => void }) {
  const [text, setText] = useState(said);
  const known = useRef(said);
  const tell = useRef(say);
  tell.current = say;
  useEffect(() => {
    if (known.current !== said) {
      known.current = said;
      setText(said);
    }
  }, [said]);
  const search = (sought: string): void => {
    if (known.current !== sought) {
      known.current = sought;
      tell.current(sought);
    }
  };
  useEffect(() => {
    const timer = setTimeout(() => search(text.trim()), RESTING);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <input
      className={styles.search}
      type="search"
      aria-label="Search messages"
      placeholder="Search messages"
      value={text}
      onChange={({ target }) => setText(target.value)}
      onKeyDown={(event) => {
        if (event.key === "Enter") {
          search(text.trim());
          event.currentTarget.blur(); // so that `j` goes to what is found
        }
      }}
    />
  );
}
