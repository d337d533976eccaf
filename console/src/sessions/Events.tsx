import { Link } from "@tanstack/react-router";
import { useCallback, useState } from "react";
import type { Conversation, Node } from "../api/schema.ts";
import { ErrorState } from "../design/States.tsx";
import { VirtualList } from "../design/VirtualList.tsx";
import styles from "./Events.module.css";
import { PATH, within } from "./address.ts";
import { useForgetting, useNodes } from "./nodes.ts";
import { insteadOf } from "./payload.ts";
import { speakerOf } from "./speaker.ts";
import { windowOf } from "./windows.ts";

const REM = 3.25; // of a row, as its style says
const SHOWN = 200; // characters of a row

interface Props {
  talk: Conversation;
  at: number | undefined;
  move: ((to: number) => void) | undefined;
}

/** All events of a conversation, of which those in sight are read. */
export function Events({ talk, at, move }: Props) {
  // Windows, not rows, are kept: all of this is drawn anew only where other nodes are needed.
  const [first, setFirst] = useState(windowOf(at ?? 0));
  const [last, setLast] = useState(first);
  const seen = useCallback((from: number, to: number) => {
    setFirst(windowOf(from));
    setLast(windowOf(to));
  }, []);
  const { node, error, retry } = useNodes(talk.id, first, last);
  useForgetting(first, last);
  if (error !== null) {
    return <ErrorState error={error} retry={retry} />;
  }
  return (
    <VirtualList
      label="Events"
      count={talk.last_seq + 1}
      height={REM * pixels()}
      chosen={at}
      choose={move}
      seen={seen}
      row={(seq) => <Row talk={talk} seq={seq} node={node(seq)} />}
    />
  );
}

function Row({ talk, seq, node }: { talk: Conversation; seq: number; node: Node | undefined }) {
  return (
    <Link
      className={styles.row}
      to={PATH}
      params={{ conversation: talk.id }}
      search={(now) => ({ ...within(now), at: seq })}
    >
      <span className={styles.number}>{seq}</span>
      {seq === 0 ? (
        <span className="quiet">Start</span>
      ) : node === undefined ? (
        <span className="quiet">…</span>
      ) : (
        <span>
          <span className={styles.who}>
            <bdi>{speakerOf(node).name}</bdi> · {speakerOf(node).role}
          </span>
          <Said node={node} />
        </span>
      )}
    </Link>
  );
}

function Said({ node }: { node: Node }) {
  const said = node.content.slice(0, SHOWN).trim();
  if (said) {
    return (
      <span className={styles.said} dir="auto">
        {said}
      </span>
    );
  }
  return <span className={`${styles.said} quiet`}>{node.deleted ? "deleted" : insteadOf(node)}</span>;
}

/** How many pixels a `rem` has here. */
function pixels(): number {
  return Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
}
