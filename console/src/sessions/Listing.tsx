import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { paging } from "../api/paging.ts";
import { PACE } from "../api/queries.ts";
import type { Conversation } from "../api/schema.ts";
import { PagedList } from "../design/PagedList.tsx";
import { EmptyState, ErrorState, Loading } from "../design/States.tsx";
import { Time } from "../design/Time.tsx";
import { counted } from "../design/figures.ts";
import { useIsAdmin } from "../shell/identity.ts";
import styles from "./Listing.module.css";
import { PATH, route, within } from "./address.ts";

interface Props {
  chosen: string | undefined;
  open: ((conversation: string) => void) | undefined;
}

/** Conversations, the newest first. */
export function Listing({ chosen, open }: Props) {
  const { agent = null, user = null } = route.useSearch();
  const read = useInfiniteQuery({
    ...paging("GET /api/conversations", { agent, user, spoken: true, openings: true, limit: 50 }),
    // Who has gone far down is left in peace: every page would be read again.
    refetchInterval: ({ state }) => (state.data?.pages.length === 1 ? PACE.slow : false),
  });
  const talks = useMemo(() => read.data?.pages.flatMap(({ conversations }) => conversations) ?? [], [read.data]);
  const openings = useMemo(
    () => new Map(read.data?.pages.flatMap((page) => Object.entries(page.openings ?? {})) ?? []),
    [read.data],
  );

  if (read.data === undefined) {
    return read.error ? (
      <ErrorState error={read.error} retry={() => void read.refetch()} />
    ) : (
      <Loading what="sessions" />
    );
  }
  if (talks.length === 0) {
    return agent === null && user === null ? <NoneYet /> : <NoneOfThese />;
  }
  return (
    <PagedList
      label="Sessions"
      what="sessions"
      pages={read}
      rows={talks}
      keyOf={idOf}
      height={60}
      isChosen={({ id }) => id === chosen}
      choose={open && (({ id }) => open(id))}
      row={(talk) => <Row talk={talk} opening={openings.get(talk.id)} />}
    />
  );
}

function idOf({ id }: Conversation): string {
  return id;
}

function Row({ talk, opening }: { talk: Conversation; opening: string | undefined }) {
  const isAdmin = useIsAdmin();
  return (
    <Link className={styles.row} to={PATH} params={{ conversation: talk.id }} search={within}>
      {opening?.trim() ? (
        <span className={styles.opening} dir="auto">
          {opening}
        </span>
      ) : (
        <span className={`${styles.opening} ${styles.silent}`}>No messages from a user yet</span>
      )}
      <span className={styles.facts}>
        <span>{talk.agent ?? "no agent"}</span>
        {isAdmin && <span>{talk.user ?? "no user"}</span>}
        <span className={styles.count}>{counted(talk.last_seq, "event")}</span>
        {talk.forked_from !== null && <span className={styles.count}>fork</span>}
      </span>
      <span className={styles.when}>
        <Time at={talk.updated_at} />
      </span>
    </Link>
  );
}

function NoneYet() {
  return (
    <EmptyState title="No sessions yet">
      <p>
        Conversations with agents appear here, event by event.{" "}
        <Link to="/chat/{-$agent}/{-$session}">Start one in Chat</Link>, or run <code>holdfast chat</code>.
      </p>
    </EmptyState>
  );
}

function NoneOfThese() {
  return (
    <EmptyState title="No matching sessions">
      <p>
        <Link to={PATH} params={{ conversation: undefined }} search={{}}>
          Show sessions of all agents and users
        </Link>
        .
      </p>
    </EmptyState>
  );
}
