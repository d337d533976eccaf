import type { Conversation } from "../api/schema.ts";
import { Facts } from "../design/Facts.tsx";
import { exactly } from "../design/time.ts";
import styles from "./Event.module.css";
import { Runs } from "./Runs.tsx";
import { StateAfter } from "./State.tsx";

/** All about a conversation while none of its events is chosen: what it is, its runs, and its state. */
export function Overview({ talk }: { talk: Conversation }) {
  return (
    <div className={styles.event}>
      <p className="quiet">
        Choose an event, or move along the line, to see what it says and the state after it. <kbd>j</kbd> goes on,{" "}
        <kbd>k</kbd> goes back.
      </p>
      <Facts
        of={{
          Session: talk.session_id,
          Id: talk.id,
          Agent: talk.agent,
          User: talk.user,
          App: talk.app,
          Begun: exactly(talk.created_at),
          "Last changed": exactly(talk.updated_at),
          Ended: talk.ended_at && exactly(talk.ended_at),
        }}
      />
      <Runs talk={talk} />
      <StateAfter talk={talk} seq={talk.last_seq} title="State now" />
    </div>
  );
}
