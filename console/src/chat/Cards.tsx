import { Markdown } from "../design/Markdown.tsx";
import { Tag } from "../design/Tag.tsx";
import type { Action, Card } from "../live/turns.ts";
import styles from "./Cards.module.css";
import { Data } from "./Data.tsx";
import { Decision } from "./Decision.tsx";

/** What the agent thought, did and saw on its way to an answer. */
export function Cards({ cards, thinking }: { cards: readonly Card[]; thinking: string }) {
  if (cards.length === 0 && thinking === "") {
    return null;
  }
  return (
    <ol className={styles.cards} aria-label="Steps of the agent">
      {cards.map((card) => (
        <li key={card.id} className={styles.card} data-kind={card.kind}>
          {card.kind === "thought" ? (
            <>
              <h3>Thought</h3>
              <Markdown text={card.text} />
            </>
          ) : (
            <ActionCard action={card} />
          )}
        </li>
      ))}
      {thinking !== "" && (
        <li className={styles.card} data-kind="thinking">
          <h3>Thinking …</h3>
          <p className={styles.thinking}>{thinking}</p>
        </li>
      )}
    </ol>
  );
}

function ActionCard({ action }: { action: Action }) {
  const { tool, approvals, observation } = action;
  const isAsked = approvals.some(({ decision }) => decision === null);
  return (
    <>
      <h3>
        Action <code>{tool}</code> {!observation && !isAsked && <Tag>running</Tag>}
      </h3>
      <Data value={action.arguments} label="Arguments" />
      {approvals.map((approval) => (
        <Decision key={approval.id} approval={approval} />
      ))}
      {observation && (
        <div className={styles.observation} data-failed={observation.failed}>
          <h3>Observation {observation.failed && <Tag tone="bad">failed</Tag>}</h3>
          <Data value={observation.text} label="Result" />
        </div>
      )}
    </>
  );
}
