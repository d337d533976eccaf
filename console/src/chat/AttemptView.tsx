import { Problem } from "../api/problem.ts";
import type { AgentRun } from "../api/schema.ts";
import { Button } from "../design/Button.tsx";
import { GrowingMarkdown, Markdown } from "../design/Markdown.tsx";
import { ErrorState } from "../design/States.tsx";
import { Tag } from "../design/Tag.tsx";
import type { Attempt, Said } from "../live/turns.ts";
import { Cards } from "./Cards.tsx";
import styles from "./Turn.module.css";
import { Unanswered } from "./Unanswered.tsx";
import { took } from "./usage.ts";
import { useSlowly } from "./slowly.ts";

interface Props {
  attempt: Attempt;
  message: Said | null;
  agent: string;
  isServed: boolean;
  isLast: boolean;
  isChosen: boolean;
  choose: (run: string) => void;
  retried: (run: AgentRun) => void;
}

/** One try of the agent to answer: how it got there, what it said, and what became of it. */
export function AttemptView({ attempt, message, agent, isServed, isLast, isChosen, choose, retried }: Props) {
  const { run, state, answers, end } = attempt;
  const text = useSlowly(attempt.text);
  return (
    <div className={styles.attempt} data-state={state}>
      <h3 className={styles.author}>{agent}</h3>
      <Cards cards={attempt.cards} thinking={attempt.thinking} />
      {text !== "" && (
        <div className={styles.streaming}>
          <GrowingMarkdown text={text} />
        </div>
      )}
      {answers.map((answer) => (
        <div key={answer.id} className={styles.answer}>
          <Markdown text={answer.text} />
          {answer.isEdited && <Tag>edited</Tag>}
        </div>
      ))}
      {state === "queued" && (
        <p className="quiet">
          {isServed ? "Queued behind earlier messages." : `Queued until a process serves ${agent}.`}
        </p>
      )}
      {state === "running" && text === "" && attempt.thinking === "" && (
        <p className={styles.working}>
          <span aria-hidden="true" /> {agent} is working …
        </p>
      )}
      {state === "failed" && <ErrorState error={Problem.of(0, end?.error)} />}
      <footer className={styles.meta}>
        {state === "cancelled" && <Tag tone="warn">stopped</Tag>}
        {state === "waiting" && <Tag tone="warn">waiting for approval</Tag>}
        {isLast && run !== null && (state === "failed" || state === "cancelled") && (
          <Unanswered run={run} message={message} retried={retried} />
        )}
        {run !== null && state !== "queued" && (
          <Button kind="quiet" className={styles.inside} aria-pressed={isChosen} onClick={() => choose(run)}>
            {(end?.usage && took(end.usage)) || "Details"}
          </Button>
        )}
      </footer>
    </div>
  );
}
