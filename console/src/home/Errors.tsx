import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Problem } from "../api/problem.ts";
import { reading } from "../api/queries.ts";
import type { AgentRun } from "../api/schema.ts";
import { Copied } from "../design/Copied.tsx";
import { cli } from "../design/commands.ts";
import { Read } from "../design/Read.tsx";
import { Tag } from "../design/Tag.tsx";
import { Time } from "../design/Time.tsx";
import { Words } from "../design/Words.tsx";
import { sentence } from "../design/sentence.ts";
import { useIsAdmin } from "../shell/identity.ts";
import { Block } from "./Block.tsx";
import styles from "./Errors.module.css";
import { lively } from "./lively.ts";

const SHOWN = 5;
const MOST_COUNTED = 10; // each comes with its whole record

/** What went wrong last: turns of agents that failed, and records that could not be processed. */
export function Errors() {
  const failed = useQuery({ ...reading("GET /api/runs", { query: { state: "failed", limit: SHOWN } }), ...lively });
  return (
    <Block title="Recent errors">
      <Read query={failed} what="recent errors">
        {({ runs }) =>
          runs.length === 0 ? (
            <p className={styles.none}>No failed runs.</p>
          ) : (
            <ul className={styles.errors}>
              {runs.map((run) => (
                <Failure key={run.id} run={run} />
              ))}
            </ul>
          )
        }
      </Read>
      <DeadLetters />
    </Block>
  );
}

function Failure({ run }: { run: AgentRun }) {
  const { what, why } = Problem.of(0, run.error ?? { what: "the run failed" });
  return (
    <li className={styles.error}>
      <Link
        to="/sessions/{-$conversation}"
        params={{ conversation: run.conversation }}
        search={{ at: run.trigger_seq, run: run.id }}
      >
        <Words text={sentence(what)} />
      </Link>
      {why && (
        <p>
          <Words text={sentence(why)} />
        </p>
      )}
      <p>
        <Tag>{run.agent}</Tag> {run.user && <>for {run.user}, </>}
        <Time at={run.finished_at ?? run.created_at} />
      </p>
    </li>
  );
}

function DeadLetters() {
  const isAdmin = useIsAdmin();
  const dead = useQuery({
    ...reading("GET /api/dead-letters", { query: { limit: MOST_COUNTED } }),
    ...lively,
    enabled: isAdmin,
  });
  if (!isAdmin) {
    return null;
  }
  return (
    <Read query={dead} what="dead letters">
      {({ dead_letters: letters }) => (
        <p className={styles.dead}>
          {letters.length === 0 ? (
            "No dead letters."
          ) : (
            <>
              <Tag tone="bad">
                {letters.length === MOST_COUNTED ? `${MOST_COUNTED} or more` : letters.length} dead letters
              </Tag>{" "}
              Records that could not be processed. List them with <Copied text={cli("dead-letters", "ls")} />
            </>
          )}
        </p>
      )}
    </Read>
  );
}
