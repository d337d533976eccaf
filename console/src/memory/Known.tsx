import { Link } from "@tanstack/react-router";
import type { Memory } from "../api/schema.ts";
import { Facts } from "../design/Facts.tsx";
import { Time } from "../design/Time.tsx";
import { counted } from "../design/figures.ts";
import { json } from "../design/json.ts";
import { PATH, searchOf } from "./address.ts";
import { namedHolder, told } from "./holders.ts";

/** Whose a memory is, where it comes from, how long it holds, and how it is found. */
export function Known({ memory }: { memory: Memory }) {
  return (
    <section>
      <h2>Details</h2>
      <Facts
        of={{
          Owner: <Whose memory={memory} />,
          Importance: String(Number(memory.importance.toFixed(2))),
          Trust: memory.trust,
          Conversation: memory.conversation && <Place conversation={memory.conversation} seq={memory.seq} />,
          Author: memory.author,
          Time: memory.at && <Time at={memory.at} />,
          Agent: memory.owner.agent,
          Source: memory.source,
          Key: memory.key,
          Created: <Time at={memory.created_at} />,
          Valid: <Validity memory={memory} />,
          Expires: memory.expires_at ? <Time at={memory.expires_at} /> : "never",
          Recalled: <Uses memory={memory} />,
          "Found by": memory.embedded ? "meaning and words" : "words only: not embedded yet",
          Metadata: Object.keys(memory.metadata).length > 0 && <pre>{json(memory.metadata, 2)}</pre>,
          Version: String(memory.version),
          Id: <code>{memory.id}</code>,
        }}
      />
    </section>
  );
}

function Whose({ memory }: { memory: Memory }) {
  const holder = namedHolder(memory.owner);
  return holder ? (
    <Link to={PATH} params={{ memory: undefined }} search={searchOf(holder)}>
      {told(holder)}
    </Link>
  ) : null;
}

function Place({ conversation, seq }: { conversation: string; seq: number | null }) {
  return (
    <Link to="/sessions/{-$conversation}" params={{ conversation }} search={seq === null ? {} : { at: seq }}>
      {conversation}
      {seq !== null && `, event ${seq}`}
    </Link>
  );
}

function Validity({ memory: { valid_from, valid_to } }: { memory: Memory }) {
  return (
    <>
      since <Time at={valid_from} />
      {valid_to && (
        <>
          , until <Time at={valid_to} />
        </>
      )}
    </>
  );
}

function Uses({ memory: { access_count, last_accessed } }: { memory: Memory }) {
  if (access_count === 0) {
    return "never";
  }
  return (
    <>
      {access_count === 1 ? "once" : counted(access_count, "time")}, last <Time at={last_accessed} />
    </>
  );
}
