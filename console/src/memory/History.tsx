import { useInfiniteQuery } from "@tanstack/react-query";
import { call } from "../api/client.ts";
import type { MemoryRevision } from "../api/schema.ts";
import { Button } from "../design/Button.tsx";
import { Read } from "../design/Read.tsx";
import { Time } from "../design/Time.tsx";
import { json } from "../design/json.ts";
import styles from "./History.module.css";
import { difference } from "./difference.ts";

const DONE: Readonly<Record<string, string>> = {
  remember: "remembered",
  edit: "edited",
  supersede: "superseded",
  pin: "pinned",
  unpin: "unpinned",
  bury: "buried",
  unbury: "unburied",
};

/** The versions that a memory has had, the newest first, and what each changed. */
export function History({ id }: { id: string }) {
  const history = useInfiniteQuery({
    queryKey: ["GET /api/memories/{id}/history", id],
    queryFn: ({ pageParam, signal }) =>
      call("GET /api/memories/{id}/history", { path: { id }, query: { before: pageParam }, signal }),
    initialPageParam: null as number | null,
    getNextPageParam: ({ cursor }) => cursor,
  });
  return (
    <section>
      <h2>History</h2>
      <Read query={history} what="its history">
        {({ pages }) => (
          <ol className={styles.history}>
            {pages
              .flatMap(({ revisions }) => revisions)
              .map((revision, index, revisions) => (
                <li key={revision.version}>
                  <p className={styles.done}>
                    Version {revision.version}, {DONE[revision.operation] ?? revision.operation}{" "}
                    <Time at={revision.at} />
                  </p>
                  <Changes revision={revision} before={revisions[index + 1]} />
                </li>
              ))}
          </ol>
        )}
      </Read>
      {history.hasNextPage && (
        <Button disabled={history.isFetching} onClick={() => void history.fetchNextPage()}>
          Show earlier versions
        </Button>
      )}
    </section>
  );
}

function Changes({ revision, before }: { revision: MemoryRevision; before: MemoryRevision | undefined }) {
  if (before === undefined) {
    return <p className={styles.content}>{revision.content}</p>;
  }
  const changed = (["type", "importance", "trust"] as const).filter((field) => revision[field] !== before[field]);
  return (
    <>
      {revision.content !== before.content && (
        <p className={styles.content}>
          {difference(before.content, revision.content).map(({ kind, text }, index) => (
            <Piece key={index} kind={kind} text={text} />
          ))}
        </p>
      )}
      {changed.map((field) => (
        <p key={field}>
          {field}: <del>{before[field]}</del> <ins>{revision[field]}</ins>
        </p>
      ))}
      {json(revision.metadata) !== json(before.metadata) && (
        <pre>
          metadata: <del>{json(before.metadata)}</del> <ins>{json(revision.metadata)}</ins>
        </pre>
      )}
    </>
  );
}

function Piece({ kind, text }: { kind: "same" | "added" | "removed"; text: string }) {
  return kind === "same" ? text : kind === "added" ? <ins>{text}</ins> : <del>{text}</del>;
}
