import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Problem } from "../api/problem.ts";
import { reading } from "../api/queries.ts";
import { Tag } from "../design/Tag.tsx";
import styles from "./Inspector.module.css";
import type { Recalled } from "../api/context.ts";

/** The memories that were recalled for a turn, best first, each with how well it answered. */
export function RecalledList({ memories }: { memories: readonly Recalled[] }) {
  if (memories.length === 0) {
    return <p className="quiet">No memories recalled.</p>;
  }
  return (
    <ol className={styles.memories}>
      {memories.map((memory) => (
        <li key={memory.id}>
          <MemoryText id={memory.id} />
          <div className={styles.facts}>
            <span title="How well it matches the message">score {memory.score.toFixed(3)}</span>
            <Tag>{memory.scope}</Tag>
            {memory.leftOut && <Tag>not shown: {memory.leftOut}</Tag>}
          </div>
        </li>
      ))}
    </ol>
  );
}

function MemoryText({ id }: { id: string }) {
  const memory = useQuery({ ...reading("GET /api/memories/{id}", { path: { id } }), staleTime: 60_000 });
  const isGone = memory.error !== null && Problem.from(memory.error).status === 404;
  return (
    <Link to="/memory/{-$memory}" params={{ memory: id }} dir="auto">
      {memory.data?.content ?? (isGone ? "Deleted memory" : id)}
    </Link>
  );
}
