import { Link } from "@tanstack/react-router";
import { useCallback, useState } from "react";
import { SplitPane } from "../design/SplitPane.tsx";
import { ErrorState, Loading } from "../design/States.tsx";
import { Screen } from "../shell/Screen.tsx";
import { Conversation } from "./Conversation.tsx";
import { Finder } from "./Finder.tsx";
import { Findings } from "./Findings.tsx";
import { Listing } from "./Listing.tsx";
import styles from "./Sessions.module.css";
import { PATH, route, within } from "./address.ts";
import { isMissing, useConversation } from "./conversation.ts";
import { waysOf } from "./ways.ts";

/** Conversations, what was said in them, and what their state was at every step. */
export function Sessions() {
  const { conversation: named } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const read = useConversation(named);
  const talk = isMissing(read.error) ? undefined : read.data; // of one that was removed since nothing is shown
  // `j` and `k` go through the list that one was in last; who comes by a link to a session is in its events.
  const [isInList, setIsInList] = useState(named === undefined);

  const open = useCallback(
    (conversation: string, at?: number) =>
      void navigate({
        params: { conversation },
        search: (now) => ({ ...within(now), at }),
        replace: true,
      }),
    [navigate],
  );
  const chosen = talk?.id ?? named;
  const keys = isInList || named === undefined ? open : undefined;
  const list = (
    <div className={styles.list} onFocus={() => setIsInList(true)}>
      <Finder />
      {search.q === undefined ? (
        <Listing chosen={chosen} open={keys} />
      ) : (
        <Findings key={search.q} text={search.q} chosen={chosen} open={keys} />
      )}
    </div>
  );
  const detail = named !== undefined && (
    <div className={styles.detail} onFocus={() => setIsInList(false)}>
      {talk ? (
        <Conversation key={talk.id} talk={talk} hasKeys={!isInList} />
      ) : read.error ? (
        <Failed error={read.error} retry={() => void read.refetch()} />
      ) : (
        <Loading what="the session" />
      )}
    </div>
  );
  return (
    <Screen title="Sessions" ways={waysOf(talk, search)} panes>
      <div className={styles.panes} data-chosen={named !== undefined}>
        <SplitPane label="Session" list={list} detail={detail || null} />
      </div>
    </Screen>
  );
}

function Failed({ error, retry }: { error: unknown; retry: () => void }) {
  if (!isMissing(error)) {
    return <ErrorState error={error} retry={retry} />;
  }
  return (
    <div className={styles.failed}>
      <ErrorState error={error} />
      <p>
        It may have been deleted, or it belongs to another user.{" "}
        <Link to={PATH} params={{ conversation: undefined }} search={{}}>
          Show all sessions
        </Link>
        .
      </p>
    </div>
  );
}
