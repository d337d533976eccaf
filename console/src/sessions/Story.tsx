import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Part, Recalled } from "../api/context.ts";
import { Problem } from "../api/problem.ts";
import { PACE } from "../api/queries.ts";
import { hasEnded, toneOf } from "../api/runs.ts";
import type { AgentRun, ModelReply, RunStory } from "../api/schema.ts";
import { wholeRun } from "../api/wholeRun.ts";
import { Facts } from "../design/Facts.tsx";
import { Read } from "../design/Read.tsx";
import { ErrorState } from "../design/States.tsx";
import { type Column, Table } from "../design/Table.tsx";
import { Tag } from "../design/Tag.tsx";
import { Time } from "../design/Time.tsx";
import { counted, figure, lasted, price, tokens } from "../design/figures.ts";
import styles from "./Event.module.css";
import { Text, Value } from "./Value.tsx";
import { PATH, within } from "./address.ts";
import { type Message, type Told, told } from "./story.ts";

/** A run, step by step: what the model was sent and why, what it replied, and what its tools gave. */
export function Story({ id }: { id: string }) {
  const read = useQuery({
    queryKey: ["GET /api/runs/{id}", id],
    queryFn: ({ signal }) => wholeRun(id, signal),
    refetchInterval: ({ state }) => (state.data && !hasEnded(state.data.run) ? PACE.soon : false),
  });
  return (
    <Read query={read} what="the run">
      {(story) => <Whole story={story} />}
    </Read>
  );
}

function Whole({ story }: { story: RunStory }) {
  const { run } = story;
  return (
    <div className={styles.event}>
      <div className={styles.head}>
        <h3>
          Run {run.number} · {run.agent}
        </h3>
        <Tag tone={toneOf(run.state)}>{run.state}</Tag>
        <span className="quiet">
          <Time at={run.created_at} />
        </span>
      </div>
      {run.error && <ErrorState error={Problem.of(0, run.error)} />}
      <Facts of={factsOf(run)} />
      {told(story).map((each) => (
        <StepTold key={each.step.number} told={each} />
      ))}
    </div>
  );
}

function factsOf(run: AgentRun): Record<string, ReactNode> {
  return {
    "Triggered by": (
      <Link
        to={PATH}
        params={{ conversation: run.conversation }}
        search={(now) => ({ ...within(now), at: run.trigger_seq })}
      >
        event {run.trigger_seq}
      </Link>
    ),
    Attempt: run.attempt > 1 ? String(run.attempt) : null,
    Model: run.model,
    Tokens: tokens(run.input_tokens, run.output_tokens),
    Cost: price(run.cost),
    Duration: run.started_at && run.finished_at && lasted(run.started_at, run.finished_at),
    Id: run.id,
  };
}

function StepTold({ told: { step, context, messages, executions, asked } }: { told: Told }) {
  return (
    <section className={`${styles.event} ${styles.step}`} aria-label={`Step ${step.number}`}>
      <h3>Step {step.number}</h3>
      {context.parts.length > 0 && (
        <Table
          caption={`Sent: ${counted(context.tokens, "token")}`}
          columns={PARTS}
          rows={context.parts}
          keyOf={({ name }) => name}
        />
      )}
      <Memories memories={context.memories} />
      <Messages messages={messages} />
      {step.reply ? <Replied reply={step.reply} /> : <p className="quiet">The model has not replied.</p>}
      {executions.map((execution) => {
        const question = asked.find(({ call_id }) => call_id === execution.call_id);
        return (
          <div key={execution.id} className={styles.part}>
            <h4>
              <code>{execution.tool}</code> {execution.status}
              {question && `, ${question.state}`}
              {execution.latency_ms != null && `, ${Math.round(execution.latency_ms)} ms`}
            </h4>
            <Value value={execution.error ?? execution.output} />
          </div>
        );
      })}
      {asked
        .filter(({ call_id }) => !executions.some((each) => each.call_id === call_id))
        .map(({ call_id, state, comment }) => (
          <p key={call_id}>
            {state === "pending" ? "Waiting for approval" : `Approval: ${state}`}
            {comment && `, “${comment}”`}.
          </p>
        ))}
    </section>
  );
}

const PARTS: readonly Column<Part>[] = [
  { name: "Part", cell: ({ name }) => name },
  { name: "Tokens", isNumber: true, cell: (part) => figure(part.tokens) },
  { name: "Included", isNumber: true, cell: ({ kept }) => kept },
  { name: "Omitted", isNumber: true, cell: ({ leftOut }) => leftOut },
  { name: "Why", cell: ({ reason }) => reason },
];

function Memories({ memories }: { memories: readonly Recalled[] }) {
  return memories.length === 0 ? null : (
    <Table caption="Recalled memories" columns={MEMORIES} rows={memories} keyOf={({ id }) => id} />
  );
}

const MEMORIES: readonly Column<Recalled>[] = [
  {
    name: "Memory",
    cell: ({ id, scope }) => (
      <Link to="/memory/{-$memory}" params={{ memory: id }}>
        {scope} {id.slice(-6)}
      </Link>
    ),
  },
  { name: "Score", isNumber: true, cell: ({ score }) => score.toFixed(3) },
  { name: "Included", cell: ({ leftOut }) => leftOut || "yes" },
];

function Messages({ messages }: { messages: readonly Message[] }) {
  return (
    <details className={styles.part}>
      <summary>{counted(messages.length, "message")}, as sent to the model</summary>
      <ol className={styles.versions}>
        {messages.map(({ role, content }, index) => (
          <li key={index}>
            <p className="quiet">{role}</p>
            {content === null ? (
              <p className="quiet">Only an admin can read the agent's instructions.</p>
            ) : typeof content === "string" ? (
              <Text text={content} />
            ) : (
              <Value value={content} />
            )}
          </li>
        ))}
      </ol>
    </details>
  );
}

function Replied({ reply: { text, thinking, calls, usage, reason, model } }: { reply: ModelReply }) {
  return (
    <div className={styles.part}>
      <h4>Reply</h4>
      {thinking && (
        <details className={styles.part}>
          <summary>Thinking</summary>
          <Text text={thinking} />
        </details>
      )}
      {text && <Text text={text} />}
      {calls.map((call) => (
        <div key={call.id} className={styles.part}>
          <h4>
            Calls <code>{call.name}</code>
          </h4>
          <Value value={call.arguments} />
        </div>
      ))}
      <p className="quiet">
        {model}, tokens: {tokens(usage.input_tokens, usage.output_tokens)}
        {reason === "length" && "; stopped at the token limit"}
        {reason === "refused" && "; refused by the model"}
      </p>
    </div>
  );
}
