import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { paging } from "../api/paging.ts";
import type { NodeHit } from "../api/schema.ts";
import { PagedList } from "../design/PagedList.tsx";
import { EmptyState, ErrorState, Loading } from "../design/States.tsx";
import { Time } from "../design/Time.tsx";
import styles from "./Findings.module.css";
import { Marked } from "./Value.tsx";
import { PATH, route, within } from "./address.ts";
import { snippet } from "./marks.ts";
import { speakerOf } from "./speaker.ts";

interface Props {
  text: string;
  chosen: string | undefined;
  open: ((conversation: string, at: number) => void) | undefined;
}

/** Events in which a text was found, by conversation. */
export function Findings({ text, chosen, open }: Props) {
  const { agent = null, user = null, at } = route.useSearch();
  const read = useInfiniteQuery(paging("GET /api/conversations/search", { text, agent, user, limit: 50 }));
  const found = useMemo(() => read.data?.pages.flatMap((page) => page.found) ?? [], [read.data]);

  if (read.data === undefined) {
    return read.error ? (
      <ErrorState error={read.error} retry={() => void read.refetch()} />
    ) : (
      <Loading what="results" />
    );
  }
  if (found.length === 0 && !read.hasNextPage) {
    return (
      <EmptyState title="No results">
        <p>No event contains “{text}”. The search ignores case and looks for the exact text: try fewer words.</p>
      </EmptyState>
    );
  }
  return (
    <PagedList
      label={`Events with “${text}”`}
      what="results"
      pages={read}
      rows={found}
      keyOf={idOf}
      height={70}
      isChosen={({ conversation, node }) => conversation.id === chosen && node.seq === at}
      choose={open && (({ conversation, node }) => open(conversation.id, node.seq))}
      row={(hit, index) => (
        <Hit hit={hit} text={text} isFirst={hit.conversation.id !== found[index - 1]?.conversation.id} />
      )}
    />
  );
}

function idOf({ node }: NodeHit): string {
  return node.id;
}

function Hit({ hit: { conversation, node }, text, isFirst }: { hit: NodeHit; text: string; isFirst: boolean }) {
  return (
    <>
      {isFirst && (
        <h2 className={styles.conversation}>
          <span>{conversation.session_id ?? conversation.id}</span> <Time at={conversation.updated_at} />
        </h2>
      )}
      <Link
        className={styles.hit}
        to={PATH}
        params={{ conversation: conversation.id }}
        search={(now) => ({ ...within(now), at: node.seq })}
      >
        <span className={styles.who}>
          {node.seq} · {speakerOf(node).name}
        </span>
        <span className={styles.snippet} dir="auto">
          <Marked pieces={snippet(node.content, text)} />
        </span>
      </Link>
    </>
  );
}
