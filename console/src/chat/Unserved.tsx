import { Link } from "@tanstack/react-router";
import type { AgentEntry } from "../api/schema.ts";
import styles from "./Room.module.css";

/** Says that no process serves the agent, and which agents are served. */
export function Unserved({ agent, agents }: { agent: string; agents: readonly AgentEntry[] }) {
  const others = agents.filter(({ served }) => served);
  return (
    <div className={styles.notice} role="note">
      <p>
        No process serves {agent}. Your messages are stored, and answered when its app runs:{" "}
        <code>holdfast up APP</code>.
        {others.length > 0 && (
          <>
            {" "}
            Available now:{" "}
            {others.map(({ name }, index) => (
              <span key={name}>
                {index > 0 && ", "}
                <Link to="/chat/{-$agent}/{-$session}" params={{ agent: name, session: undefined }}>
                  {name}
                </Link>
              </span>
            ))}
            .
          </>
        )}
      </p>
    </div>
  );
}
