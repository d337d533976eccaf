import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Problem } from "../api/problem.ts";
import { reading } from "../api/queries.ts";
import { Button } from "../design/Button.tsx";
import { SplitPane } from "../design/SplitPane.tsx";
import { ErrorState, Loading } from "../design/States.tsx";
import { Screen } from "../shell/Screen.tsx";
import { useMe } from "../shell/identity.ts";
import { Adding } from "./Adding.tsx";
import { Detail } from "./Detail.tsx";
import { Finder } from "./Finder.tsx";
import { Hits } from "./Hits.tsx";
import { Holders } from "./Holders.tsx";
import { Listing } from "./Listing.tsx";
import styles from "./Memory.module.css";
import { route } from "./address.ts";
import { namedHolder, told } from "./holders.ts";
import { waysOf } from "./ways.ts";

/** Who remembers what, what answers a question and why. */
export function Memory() {
  const { memory: id } = route.useParams();
  const search = route.useSearch();
  const { user } = useMe();
  const memory = useQuery({
    ...reading("GET /api/memories/{id}", { path: { id: id ?? "" } }),
    enabled: id !== undefined,
  });
  const isGone = Problem.from(memory.error).status === 404; // it may be known all the same, from before
  const [adds, setAdds] = useState(false);

  // An address with a memory alone shows it among those of whose it is.
  const holder =
    namedHolder(search) ??
    (id !== undefined && memory.isPending ? undefined : namedHolder(memory.data?.owner ?? { name: user }));
  if (holder === undefined) {
    return <Loading what="memories" />;
  }
  const list = (
    <div key={told(holder)} className={styles.list}>
      <Finder holder={holder} />
      {search.q === undefined ? (
        <Listing holder={holder} chosen={id} add={() => setAdds(true)} />
      ) : (
        <Hits holder={holder} question={search.q} chosen={id} />
      )}
    </div>
  );
  const detail =
    id === undefined ? null : memory.data && !isGone ? (
      <Detail key={id} memory={memory.data} holder={holder} />
    ) : memory.error ? (
      <ErrorState error={memory.error} retry={() => void memory.refetch()} />
    ) : (
      <Loading what="the memory" />
    );
  return (
    <Screen
      title="Memory"
      ways={waysOf({ holder, memory: id, question: search.q, alsoPast: search.past ?? false })}
      actions={<Button onClick={() => setAdds(true)}>Add a memory</Button>}
      panes
    >
      <div className={styles.panes} data-chosen={id !== undefined}>
        <Holders chosen={holder} />
        <SplitPane label="Memory" list={list} detail={detail} />
      </div>
      <Adding open={adds} close={() => setAdds(false)} holder={holder} />
    </Screen>
  );
}
