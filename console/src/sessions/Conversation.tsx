import { Link } from "@tanstack/react-router";
import { useCallback, useEffect, useState } from "react";
import type { Conversation as Talk } from "../api/schema.ts";
import { Button } from "../design/Button.tsx";
import { Timeline } from "../design/Timeline.tsx";
import { counted } from "../design/figures.ts";
import styles from "./Conversation.module.css";
import { Event } from "./Event.tsx";
import { Events } from "./Events.tsx";
import { Fork } from "./Fork.tsx";
import { Heading } from "./Heading.tsx";
import { Overview } from "./Overview.tsx";
import { Story } from "./Story.tsx";
import { PATH, route, within } from "./address.ts";
import { useFreshness } from "./changes.ts";
import { usePosition } from "./position.ts";

interface Props {
  talk: Talk;
  /** Whether `j` and `k` go through its events. */
  hasKeys: boolean;
}

/** A conversation: its events along a line of time, and beside them one of them, one of its runs, or all about it. */
export function Conversation({ talk, hasKeys }: Props) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const arrive = useCallback(
    (at: number) => void navigate({ search: (now) => ({ ...now, at, run: undefined }), replace: true }),
    [navigate],
  );
  const [at, move] = usePosition(search.at, arrive);
  const place = Math.min(at ?? talk.last_seq, talk.last_seq);
  useFreshness(talk);

  const isChosen = search.run !== undefined || at !== undefined;
  return (
    <article className={styles.conversation} data-chosen={isChosen} aria-labelledby="session">
      <Heading talk={talk} />
      <div className={styles.time}>
        <Timeline label="Event" last={talk.last_seq} at={place} move={move}>
          <News last={talk.last_seq} place={at} show={() => move(talk.last_seq)} />
          <Fork talk={talk} at={place} />
        </Timeline>
      </div>
      <div className={styles.panes}>
        <div className={styles.events}>
          <Events talk={talk} at={at} move={hasKeys ? move : undefined} />
        </div>
        <section className={styles.beside} aria-label="Details" tabIndex={0}>
          {isChosen && (
            <Link className={styles.back} to={PATH} params={{ conversation: talk.id }} search={within}>
              ← About this session
            </Link>
          )}
          {search.run !== undefined ? (
            <Story id={search.run} />
          ) : at !== undefined ? (
            <Event key={at} talk={talk} seq={at} sought={search.q} />
          ) : (
            <Overview talk={talk} />
          )}
        </section>
      </div>
    </article>
  );
}

/** How many events came since one looks; they are added below, and nothing moves by itself. */
function News({ last, place, show }: { last: number; place: number | undefined; show: () => void }) {
  const [known, setKnown] = useState(last);
  useEffect(() => {
    if (place === last) {
      setKnown(last);
    }
  }, [place, last]);
  const count = last - known;
  return (
    <span role="status">
      {count > 0 && (
        <Button kind="quiet" onClick={show}>
          {counted(count, "new event")}
        </Button>
      )}
    </span>
  );
}
