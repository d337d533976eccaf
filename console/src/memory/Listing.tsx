import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { PACE } from "../api/queries.ts";
import type { Memory } from "../api/schema.ts";
import { Button } from "../design/Button.tsx";
import { PagedList } from "../design/PagedList.tsx";
import { EmptyState, ErrorState, Loading } from "../design/States.tsx";
import styles from "./Listing.module.css";
import { Remembered } from "./Remembered.tsx";
import { PATH, route, searchOf } from "./address.ts";
import { type Holder, told } from "./holders.ts";
import { listing } from "./queries.ts";

interface Props {
  holder: Holder;
  chosen: string | undefined;
  add: () => void;
}

/** An owner's memories, the newest first. */
export function Listing({ holder, chosen, add }: Props) {
  const { past } = route.useSearch();
  const navigate = route.useNavigate();
  const read = useInfiniteQuery({
    ...listing(holder, past ?? false),
    // Who has gone far down is left in peace: every page would be read again.
    refetchInterval: ({ state }) => (state.data?.pages.length === 1 ? PACE.slow : false),
  });
  const memories = useMemo(() => read.data?.pages.flatMap((page) => page.memories) ?? [], [read.data]);
  if (read.data === undefined) {
    return read.error ? (
      <ErrorState error={read.error} retry={() => void read.refetch()} />
    ) : (
      <Loading what="memories" />
    );
  }
  if (memories.length === 0) {
    return <NoneYet holder={holder} add={add} />;
  }
  const search = { ...searchOf(holder), past };
  return (
    <PagedList
      label={`Memories of ${told(holder)}`}
      what="memories"
      pages={read}
      rows={memories}
      keyOf={idOf}
      height={60}
      isChosen={({ id }) => id === chosen}
      choose={({ id }) => void navigate({ params: { memory: id }, search, replace: chosen !== undefined })}
      row={(memory) => (
        <Link to={PATH} params={{ memory: memory.id }} search={search} className={styles.row}>
          <Remembered memory={memory} />
        </Link>
      )}
    />
  );
}

function idOf({ id }: Memory): string {
  return id;
}

function NoneYet({ holder, add }: { holder: Holder; add: () => void }) {
  return (
    <div className={styles.listing}>
      <EmptyState title="No memories yet">
        <p>
          There are no current memories of {told(holder)}. Add one, or{" "}
          <Link to="/chat/{-$agent}/{-$session}">chat with an agent</Link>: it remembers what you tell it.
        </p>
        <Button kind="primary" onClick={add}>
          Add a memory
        </Button>
      </EmptyState>
    </div>
  );
}
