import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { reading } from "../api/queries.ts";
import type { Memory } from "../api/schema.ts";
import { Tag } from "../design/Tag.tsx";
import { Actions } from "./Actions.tsx";
import { Chain } from "./Chain.tsx";
import styles from "./Detail.module.css";
import { History } from "./History.tsx";
import { Known } from "./Known.tsx";
import { Recall } from "./Recall.tsx";
import { PATH } from "./address.ts";
import { conditions } from "./condition.ts";
import { type Holder, told } from "./holders.ts";

const ONE_PANE = "(max-width: 800px)"; // as SplitPane has it

/** All that is known of a memory, and what can be done with it. */
export function Detail({ memory, holder }: { memory: Memory; holder: Holder }) {
  const article = useRef<HTMLElement>(null);
  const chain = useQuery(reading("GET /api/memories/{id}/chain", { path: { id: memory.id } }));
  useEffect(() => {
    // On a narrow screen the list has gone, and what was pressed in it: who goes by keys or by ear goes on here.
    if (document.activeElement === document.body && matchMedia(ONE_PANE).matches) {
      article.current?.focus();
    }
  }, []);
  const links = chain.data?.memories ?? [];
  return (
    <article ref={article} className={styles.detail} aria-label="Memory" tabIndex={-1}>
      <Link to={PATH} params={{ memory: undefined }} search={(now) => now} className={styles.close}>
        ← Memories of {told(holder)}
      </Link>
      <p className={styles.content}>{memory.content}</p>
      <p className={styles.tags}>
        <Tag>{memory.type}</Tag>
        {conditions(memory, new Date()).map(({ word, tone }) => (
          <Tag key={word} tone={tone}>
            {word}
          </Tag>
        ))}
      </p>
      <Actions memory={memory} isReplaced={links.some(({ id }) => id === memory.superseded_by)} />
      <Recall memory={memory} holder={holder} />
      <Chain links={links} error={chain.error} chosen={memory.id} />
      <Known memory={memory} />
      <History id={memory.id} />
    </article>
  );
}
