import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect, useRef } from "react";
import type { Hit } from "../api/schema.ts";
import { Button } from "../design/Button.tsx";
import { EmptyState, ErrorState, Loading } from "../design/States.tsx";
import { useKeys } from "../design/keys.ts";
import styles from "./Hits.module.css";
import { MissingOne } from "./MissingOne.tsx";
import { Remembered } from "./Remembered.tsx";
import { Legend, ScoreBar, ScoreTable } from "./Score.tsx";
import { PATH, route, searchOf } from "./address.ts";
import { type Holder, told } from "./holders.ts";
import { type Explained, type Scale, explained, scaleOf, written } from "./parts.ts";
import { searching } from "./queries.ts";

const MISSED = 10; // that are shown below the cut

interface Props {
  holder: Holder;
  question: string;
  chosen: string | undefined;
}

/** What answers a question, best first, and what each score is the sum of. */
export function Hits({ holder, question, chosen }: Props) {
  const { explain = false, missed = false } = route.useSearch();
  const navigate = route.useNavigate();
  const found = useQuery(searching(holder, question));
  const cut = found.data?.hits.length ?? 0;
  const further = useQuery({ ...searching(holder, question, cut + MISSED), enabled: missed && cut > 0 });

  const hits = found.data?.hits ?? [];
  const below = missed ? without(further.data?.hits ?? [], hits) : [];
  const all = [...hits, ...below];
  const at = all.findIndex(({ memory }) => memory.id === chosen);
  const step = (by: number): void => {
    const next = all[Math.max(0, at === -1 ? 0 : at + by)];
    if (next) {
      void navigate({ params: { memory: next.memory.id }, search: (now) => now, replace: chosen !== undefined });
    }
  };
  useKeys({ j: () => step(1), k: () => step(-1) });

  if (found.data === undefined) {
    return found.error ? (
      <ErrorState error={found.error} retry={() => void found.refetch()} />
    ) : (
      <Loading what="results" />
    );
  }
  const scored = all.map((hit) => explained(hit));
  const scale = scaleOf(scored);
  const row = (hit: Hit, index: number): ReactNode => (
    <Found
      key={hit.memory.id}
      hit={hit}
      scored={scored[index]!}
      scale={scale}
      isExplained={explain}
      isChosen={index === at}
      holder={holder}
    />
  );
  return (
    <div className={styles.hits}>
      <div className={styles.head}>
        <p role="status">{answer(hits.length)}</p>
        {hits.length > 0 && (
          <label className={styles.explain}>
            <input
              type="checkbox"
              checked={explain}
              onChange={({ target }) =>
                void navigate({ search: (now) => ({ ...now, explain: target.checked || undefined }), replace: true })
              }
            />
            explain scores
          </label>
        )}
        {found.data.reduced && (
          <p className={styles.reduced}>Degraded: found by words, not by meaning. {found.data.reduced}</p>
        )}
        <Legend several={scored} />
      </div>
      {hits.length === 0 && (
        <EmptyState title="No results">
          <p>
            No memory of {told(holder)} matches this query. Use other words, or find out below why a memory is not here.
          </p>
        </EmptyState>
      )}
      <ol className={styles.list}>{hits.map(row)}</ol>
      {below.length > 0 && (
        <>
          <p className={styles.cut}>Below the cut: agents do not get these.</p>
          <ol className={styles.list} start={hits.length + 1} aria-label="Below the cut">
            {below.map((hit, index) => row(hit, hits.length + index))}
          </ol>
        </>
      )}
      <footer className={styles.foot}>
        {missed && further.data && below.length === 0 && <p>There are no more matching memories.</p>}
        {missed && further.error && <ErrorState error={further.error} retry={() => void further.refetch()} />}
        {cut > 0 && (
          <Button
            onClick={() =>
              void navigate({ search: (now) => ({ ...now, missed: missed ? undefined : true }), replace: true })
            }
          >
            {missed ? "Hide memories below the cut" : "Show memories below the cut"}
          </Button>
        )}
        <MissingOne holder={holder} shown={all.map(({ memory }) => memory.id)} />
      </footer>
    </div>
  );
}

interface FoundProps {
  hit: Hit;
  scored: Explained;
  scale: Scale;
  isExplained: boolean;
  isChosen: boolean;
  holder: Holder;
}

function Found({ hit, scored, scale, isExplained, isChosen, holder }: FoundProps) {
  const item = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isChosen) {
      item.current?.scrollIntoView({ block: "nearest" });
    }
  }, [isChosen]);
  return (
    <li ref={item} className={styles.hit} aria-current={isChosen || undefined}>
      <div className={styles.line}>
        <Link
          to={PATH}
          params={{ memory: hit.memory.id }}
          search={(now) => ({ ...now, ...searchOf(holder) })}
          className={styles.link}
        >
          <Remembered memory={hit.memory} />
        </Link>
        <span className={styles.score}>{written(scored.units)}</span>
      </div>
      <ScoreBar scored={scored} scale={scale} isTold={isExplained} />
      {isExplained && <ScoreTable scored={scored} />}
    </li>
  );
}

function without(several: readonly Hit[], others: readonly Hit[]): Hit[] {
  const ids = new Set(others.map(({ memory }) => memory.id));
  return several.filter(({ memory }) => !ids.has(memory.id));
}

function answer(count: number): string {
  return count === 0 ? "No results." : count === 1 ? "1 result." : `${count} results, best first.`;
}
