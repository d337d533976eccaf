import { useMemo } from "react";
import type { Conversation } from "../api/schema.ts";
import { ErrorState, Loading } from "../design/States.tsx";
import { Tag, type Tone } from "../design/Tag.tsx";
import styles from "./State.module.css";
import { Value } from "./Value.tsx";
import { useChanges } from "./changes.ts";
import { type Difference, type State, differencesAt, stateAt } from "./state.ts";

const TONES: Record<Difference["kind"], Tone> = { added: "good", changed: "warn", removed: "bad" };

interface Props {
  talk: Conversation;
  seq: number;
}

/** What an event changed in the state of its conversation. */
export function Differences({ talk, seq }: Props) {
  const { data: changes } = useChanges(talk.id);
  const differences = useMemo(() => changes && differencesAt(changes, seq), [changes, seq]);
  return (
    differences && (
      <section className={styles.state} aria-label="State changes">
        <h3>State changes</h3>
        {differences.length === 0 ? (
          <p className="quiet">This event did not change the state.</p>
        ) : (
          <dl className={styles.names}>
            {differences.map((difference) => (
              <Differing key={difference.name} difference={difference} />
            ))}
          </dl>
        )}
      </section>
    )
  );
}

/** The state that a conversation had after an event: what a fork there has. */
export function StateAfter({ talk, seq, title }: Props & { title: string }) {
  const { data: changes, error, refetch } = useChanges(talk.id);
  const kept = useMemo(() => changes && stateAt(changes, seq), [changes, seq]);
  if (kept === undefined) {
    return error ? <ErrorState error={error} retry={() => void refetch()} /> : <Loading what="the state" />;
  }
  return (
    <section className={styles.state} aria-label={title}>
      <h3>{title}</h3>
      {kept.own.size === 0 ? <p className="quiet">Empty</p> : <Names state={kept.own} />}
      {kept.shared.size > 0 && (
        <>
          <h3>Written from this session to the state of its user and app</h3>
          <p className="quiet">Other sessions may have changed it later.</p>
          <Names state={kept.shared} />
        </>
      )}
    </section>
  );
}

function Differing({ difference: { name, kind, before, after } }: { difference: Difference }) {
  return (
    <div className={`${styles.entry} ${styles.difference}`} data-kind={kind}>
      <dt className={styles.name}>
        {name} <Tag tone={TONES[kind]}>{kind}</Tag>
      </dt>
      <dd className={styles.values}>
        {kind !== "added" && (
          <del>
            <Value value={before} />
          </del>
        )}
        {kind === "changed" && <span aria-hidden>→</span>}
        {kind !== "removed" && (
          <ins>
            <Value value={after} />
          </ins>
        )}
      </dd>
    </div>
  );
}

function Names({ state }: { state: State }) {
  return (
    <dl className={styles.names}>
      {[...state].sort(byName).map(([name, value]) => (
        <div key={name} className={styles.entry}>
          <dt className={styles.name}>{name}</dt>
          <dd className={styles.values}>
            <Value value={value} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function byName([one]: [string, unknown], [other]: [string, unknown]): number {
  return one < other ? -1 : 1;
}
