import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useEffect, useRef } from "react";
import type { Memory, WhyNot } from "../api/schema.ts";
import { Button } from "../design/Button.tsx";
import { Read } from "../design/Read.tsx";
import { Tag } from "../design/Tag.tsx";
import { sentence } from "../design/sentence.ts";
import styles from "./Recall.module.css";
import { route, searchOf } from "./address.ts";
import { type Holder, namedHolder } from "./holders.ts";
import { explained, written } from "./parts.ts";
import { absence } from "./queries.ts";

/** Whether a memory answers a question, with its place and score, and if it does not, why. */
export function Recall({ memory, holder }: { memory: Memory; holder: Holder }) {
  const { q } = route.useSearch();
  const navigate = route.useNavigate();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (field.current) {
      field.current.value = q ?? "";
    }
  }, [q]);
  const ask = (event: FormEvent): void => {
    event.preventDefault();
    const question = field.current?.value.trim();
    const whose = namedHolder(memory.owner);
    if (question && whose) {
      void navigate({ search: (now) => ({ ...now, ...searchOf(whose), q: question }) });
    }
  };
  return (
    <section className={styles.recall}>
      <h2>Test recall</h2>
      <form className={styles.form} onSubmit={ask}>
        <input
          ref={field}
          required
          aria-label="Query that should find it"
          placeholder="Query that should find it"
          defaultValue={q}
        />
        <Button type="submit">Test</Button>
      </form>
      {q !== undefined && <Answer id={memory.id} holder={holder} question={q} />}
    </section>
  );
}

function Answer({ id, holder, question }: { id: string; holder: Holder; question: string }) {
  return (
    <Read query={useQuery(absence(id, holder, question))} what="the reason">
      {({ reason, detail, rank, score }) => (
        <div role="status" className={styles.answer}>
          <p>
            <Tag tone={reason === "returned" ? "good" : "warn"}>{REASONS[reason]}</Tag> {sentence(detail)}
          </p>
          {rank != null && (
            <p className={styles.weighed}>
              Rank {rank}
              {score != null && `, score ${written(explained({ score }).units)}`}
            </p>
          )}
        </div>
      )}
    </Read>
  );
}

const REASONS: Readonly<Record<WhyNot["reason"], string>> = {
  returned: "recalled",
  unknown: "unknown",
  deleted: "deleted",
  scope: "other owner",
  buried: "buried",
  expired: "expired",
  superseded: "superseded",
  "not yet valid": "not yet valid",
  faded: "faded",
  filtered: "filtered out",
  "no embedding yet": "no embedding yet",
  "below the cut": "below the cut",
};
