import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { paging } from "../api/paging.ts";
import { PACE } from "../api/queries.ts";
import { hasEnded, toneOf } from "../api/runs.ts";
import type { AgentRun, Conversation } from "../api/schema.ts";
import { Button } from "../design/Button.tsx";
import { ErrorState, Loading } from "../design/States.tsx";
import { type Column, Table } from "../design/Table.tsx";
import { Tag } from "../design/Tag.tsx";
import { Time } from "../design/Time.tsx";
import { figure, price } from "../design/figures.ts";
import styles from "./Event.module.css";
import { PATH } from "./address.ts";

/** The turns of agents in a conversation, the newest first. */
export function Runs({ talk }: { talk: Conversation }) {
  const read = useInfiniteQuery({
    ...paging("GET /api/runs", { conversation: talk.id, limit: 20 }),
    refetchInterval: ({ state }) => (state.data?.pages[0]?.runs.every(hasEnded) ? false : PACE.steady),
  });
  if (read.data === undefined) {
    return read.error ? <ErrorState error={read.error} retry={() => void read.refetch()} /> : <Loading what="runs" />;
  }
  const runs = read.data.pages.flatMap((page) => page.runs);
  if (runs.length === 0) {
    return <p className="quiet">No runs yet.</p>;
  }
  return (
    <div className={styles.part}>
      <Table caption="Runs" columns={COLUMNS} rows={runs} keyOf={({ id }) => id} />
      {read.hasNextPage && (
        <div>
          <Button disabled={read.isFetching} onClick={() => void read.fetchNextPage()}>
            Show earlier runs
          </Button>
        </div>
      )}
    </div>
  );
}

const COLUMNS: readonly Column<AgentRun>[] = [
  {
    name: "Run",
    cell: (run) => (
      <Link to={PATH} params={{ conversation: run.conversation }} search={(now) => ({ ...now, run: run.id })}>
        {run.number} · {run.agent}
      </Link>
    ),
  },
  { name: "State", cell: ({ state }) => <Tag tone={toneOf(state)}>{state}</Tag> },
  { name: "Steps", isNumber: true, cell: ({ steps }) => steps },
  { name: "Tokens", isNumber: true, cell: (run) => figure(run.input_tokens + run.output_tokens) },
  { name: "Cost", isNumber: true, cell: ({ cost }) => price(cost) },
  { name: "Created", cell: ({ created_at }) => <Time at={created_at} /> },
];
