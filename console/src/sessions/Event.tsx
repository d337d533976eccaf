import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { reading } from "../api/queries.ts";
import type { Conversation, Node } from "../api/schema.ts";
import { Facts } from "../design/Facts.tsx";
import { Read } from "../design/Read.tsx";
import { EmptyState, ErrorState, Loading } from "../design/States.tsx";
import { Tag } from "../design/Tag.tsx";
import { Time } from "../design/Time.tsx";
import { exactly } from "../design/time.ts";
import styles from "./Event.module.css";
import { Differences, StateAfter } from "./State.tsx";
import { Text, Value } from "./Value.tsx";
import { PATH } from "./address.ts";
import { useNodes } from "./nodes.ts";
import { callsOf, restOf, runOf } from "./payload.ts";
import { speakerOf } from "./speaker.ts";
import { windowOf } from "./windows.ts";

interface Props {
  talk: Conversation;
  seq: number;
  sought: string | undefined;
}

/** One event: who said what, with what else came with it, and the state after it. */
export function Event({ talk, seq, sought }: Props) {
  if (seq > talk.last_seq) {
    return (
      <EmptyState title={`There is no event ${seq} yet`}>
        <p>The last one is {talk.last_seq}.</p>
      </EmptyState>
    );
  }
  return (
    <div className={styles.event}>
      {seq === 0 ? <Beginning talk={talk} /> : <Said talk={talk} seq={seq} sought={sought} />}
      <Differences talk={talk} seq={seq} />
      <StateAfter talk={talk} seq={seq} title="State after this event" />
    </div>
  );
}

function Beginning({ talk }: { talk: Conversation }) {
  return (
    <div className={styles.head}>
      <h3>Start</h3>
      <span className="quiet">
        <Time at={talk.created_at} />
      </span>
    </div>
  );
}

function Said({ talk, seq, sought }: Props) {
  const { node: nodeOf, error, retry } = useNodes(talk.id, windowOf(seq), windowOf(seq));
  const node = nodeOf(seq);
  if (node === undefined) {
    return error ? <ErrorState error={error} retry={retry} /> : <Loading what="the event" />;
  }
  const { role, name } = speakerOf(node);
  const run = runOf(node);
  return (
    <>
      <div className={styles.head}>
        <h3>
          {seq} · <bdi>{name}</bdi>
        </h3>
        <Tag>{role}</Tag>
        {node.deleted ? <Tag tone="bad">deleted</Tag> : node.version > 1 && <Tag tone="warn">edited</Tag>}
        <span className="quiet">
          <Time at={node.created_at} />
        </span>
        {run !== null && (
          <Link to={PATH} params={{ conversation: talk.id }} search={(now) => ({ ...now, at: seq, run })}>
            Show run
          </Link>
        )}
      </div>
      {node.content && <Text text={node.content} sought={sought} />}
      {callsOf(node).map((call, index) => (
        <div key={index} className={styles.part}>
          <h4>
            Calls <code>{call.name}</code>
          </h4>
          <Value value={call.arguments} />
        </div>
      ))}
      {restOf(node).map(([key, value]) => (
        <div key={key} className={styles.part}>
          <h4>{key}</h4>
          <Value value={value} />
        </div>
      ))}
      {node.version > 1 && <Versions node={node} />}
      <More node={node} />
    </>
  );
}

/** What an event was before it was edited or deleted, the newest first. */
function Versions({ node }: { node: Node }) {
  const [isOpen, setIsOpen] = useState(false);
  const read = useQuery({ ...reading("GET /api/nodes/{id}/revisions", { path: { id: node.id } }), enabled: isOpen });
  return (
    <details className={styles.part} onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
      <summary>Earlier versions</summary>
      <Read query={read} what="earlier versions">
        {({ revisions }) => (
          <ol className={styles.versions} reversed>
            {revisions.toReversed().map(({ version, updated_at, deleted, content }) => (
              <li key={version} value={version}>
                <p className="quiet">
                  Version {version}, <Time at={updated_at} />
                </p>
                {deleted ? <p className="quiet">Deleted.</p> : <Text text={content} />}
              </li>
            ))}
          </ol>
        )}
      </Read>
    </details>
  );
}

function More({ node }: { node: Node }) {
  return (
    <details className={styles.part}>
      <summary>Details</summary>
      <Facts
        of={{
          Id: node.id,
          Context: node.context,
          Key: node.key,
          "Written by": node.form,
          Created: exactly(node.created_at),
          Updated: node.version > 1 ? exactly(node.updated_at) : null,
          Version: String(node.version),
        }}
      />
    </details>
  );
}
