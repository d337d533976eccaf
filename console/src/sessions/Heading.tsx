import { Link } from "@tanstack/react-router";
import { address } from "../api/client.ts";
import type { Conversation } from "../api/schema.ts";
import { buttonLike } from "../design/Button.tsx";
import { Tag } from "../design/Tag.tsx";
import { Time } from "../design/Time.tsx";
import { useIsAdmin } from "../shell/identity.ts";
import styles from "./Heading.module.css";
import { PATH, within } from "./address.ts";

/** Which session it is, and what can be done with the whole of it. */
export function Heading({ talk }: { talk: Conversation }) {
  const isAdmin = useIsAdmin();
  const name = talk.session_id ?? talk.id;
  return (
    <header className={styles.heading}>
      <Link className={styles.back} to={PATH} params={{ conversation: undefined }} search={within}>
        ← Sessions
      </Link>
      <div className={styles.title}>
        <h2 id="session" tabIndex={-1} title={name}>
          {name}
        </h2>
        <p className={styles.facts}>
          <span>{talk.agent ?? "no agent"}</span>
          {isAdmin && talk.user !== null && (
            <Link
              to={PATH}
              params={{ conversation: talk.id }}
              search={(now) => ({ ...now, user: talk.user ?? undefined })}
            >
              {talk.user}
            </Link>
          )}
          <Time at={talk.updated_at} />
          {talk.forked_from !== null && (
            <Tag>
              fork of{" "}
              <Link
                to={PATH}
                params={{ conversation: talk.forked_from }}
                search={(now) => ({ ...within(now), at: talk.forked_at ?? undefined })}
              >
                another, at event {talk.forked_at}
              </Link>
            </Tag>
          )}
        </p>
      </div>
      <div className={styles.actions}>
        {talk.agent !== null && talk.session_id !== null && (
          <Link
            className={buttonLike}
            to="/chat/{-$agent}/{-$session}"
            params={{ agent: talk.agent, session: talk.session_id }}
          >
            Open in chat
          </Link>
        )}
        <a
          className={buttonLike}
          href={address("/api/conversations/{id}/export", talk)}
          download={`${name.replace(/[^\w.-]+/g, "-")}.jsonl`}
        >
          Export
        </a>
      </div>
    </header>
  );
}
