import { memo } from "react";
import type { AgentRun } from "../api/schema.ts";
import { Tag } from "../design/Tag.tsx";
import { Time } from "../design/Time.tsx";
import type { Turn } from "../live/turns.ts";
import { AttemptView } from "./AttemptView.tsx";
import { Spoken } from "./Spoken.tsx";
import styles from "./Turn.module.css";

interface Props {
  turn: Turn;
  agent: string;
  isServed: boolean;
  chosen: string | null;
  choose: (run: string) => void;
  retried: (run: AgentRun) => void;
}

/** A message and what came of it. */
export const TurnView = memo(function TurnView({ turn, agent, isServed, chosen, choose, retried }: Props) {
  const { message, attempts } = turn;
  return (
    <article className={styles.turn} aria-label={message ? "Message and answer" : "Answer"} tabIndex={-1}>
      {message && (
        <div className={styles.message}>
          <h3 className={styles.author}>
            <bdi>{message.author}</bdi> <Time at={message.at} /> {message.isEdited && <Tag>edited</Tag>}
          </h3>
          <Spoken text={message.text} />
        </div>
      )}
      {attempts.map((attempt, index) => (
        <AttemptView
          key={attempt.key}
          attempt={attempt}
          message={message}
          agent={agent}
          isServed={isServed}
          isLast={index === attempts.length - 1}
          isChosen={attempt.run !== null && attempt.run === chosen}
          choose={choose}
          retried={retried}
        />
      ))}
    </article>
  );
});
