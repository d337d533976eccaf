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
        Select an event in the list or with the slider to see its content and the state after it. <kbd>j</kbd> selects
        the next event, <kbd>k</kbd> the previous one.
      </p>
      <Facts
        of={{
          Session: talk.session_id,
          Id: talk.id,
          Agent: talk.agent,
          User: talk.user,
          App: talk.app,
          Created: exactly(talk.created_at),
          Updated: exactly(talk.updated_at),
          Ended: talk.ended_at && exactly(talk.ended_at),
        }}
      />
      <Runs talk={talk} />
      <StateAfter talk={talk} seq={talk.last_seq} title="Current state" />
    </div>
  );
}
