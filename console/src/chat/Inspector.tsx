import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { memo, useState } from "react";
import { contextOf, decisionsOf } from "../api/context.ts";
import { toneOf } from "../api/runs.ts";
import type { RunStory, RunStep } from "../api/schema.ts";
import { wholeRun } from "../api/wholeRun.ts";
import { Facts } from "../design/Facts.tsx";
import { lasted, price, tokens } from "../design/figures.ts";
import { Read } from "../design/Read.tsx";
import { Tag, type Tone } from "../design/Tag.tsx";
import { ContextMeter } from "./ContextMeter.tsx";
import styles from "./Inspector.module.css";
import { RecalledList } from "./RecalledList.tsx";

const DECIDED: Record<string, Tone> = { approved: "good", denied: "bad", pending: "warn" };

/** What was behind an answer: what the model was shown in each step and why, what was recalled, what it took. */
export const Inspector = memo(function Inspector({ run, news }: { run: string | null; news: string }) {
  const story = useQuery({
    queryKey: ["GET /api/runs/{id}", run, news], // what was asked before the news does not know of them
    queryFn: ({ signal }) => wholeRun(run ?? "", signal),
    placeholderData: keepPreviousData,
    gcTime: 0,
    enabled: run !== null,
  });
  if (run === null) {
    return <p className="quiet">Send a message to see what the model receives for its answer, and why.</p>;
  }
  return (
    <Read query={story} what="the run">
      {(told) => <Story story={told} />}
    </Read>
  );
});

function Story({ story }: { story: RunStory }) {
  const { run, steps } = story;
  const [chosen, setChosen] = useState<number | null>(null);
  const step = steps.find(({ number }) => number === chosen) ?? steps.at(-1);
  return (
    <>
      <Facts
        of={{
          State: <Tag tone={toneOf(run.state)}>{run.state}</Tag>,
          Model: run.model ?? "no reply yet",
          Tokens: tokens(run.input_tokens, run.output_tokens),
          Cost: price(run.cost),
          Time: run.finished_at && lasted(run.started_at ?? run.created_at, run.finished_at),
        }}
      />
      {step ? (
        <>
          {steps.length > 1 && (
            <label className={styles.steps}>
              Step
              <select value={step.number} onChange={(event) => setChosen(Number(event.target.value))}>
                {steps.map(({ number }) => (
                  <option key={number} value={number}>
                    {number} of {steps.length}
                  </option>
                ))}
              </select>
            </label>
          )}
          <Shown step={step} />
          <Decisions story={story} />
        </>
      ) : (
        <p className="quiet">The context appears here after the model's first reply.</p>
      )}
    </>
  );
}

function Shown({ step }: { step: RunStep }) {
  const context = contextOf(step);
  return (
    <>
      <section aria-label="Context">
        <h3>Context</h3>
        <ContextMeter context={context} />
      </section>
      <section aria-label="Recalled memories">
        <h3>Recalled memories</h3>
        <RecalledList memories={context.memories} />
      </section>
      {step.reply?.thinking && (
        <details>
          <summary>Thinking</summary>
          <p className={styles.thinking}>{step.reply.thinking}</p>
        </details>
      )}
    </>
  );
}

/** What people were asked in the run, and what they said. */
function Decisions({ story }: { story: RunStory }) {
  const asked = decisionsOf(story);
  if (asked.length === 0) {
    return null;
  }
  return (
    <section aria-label="Approvals">
      <h3>Approvals</h3>
      <ul className={styles.decisions}>
        {asked.map(({ id, tool, state, comment }) => (
          <li key={id}>
            <code>{tool}</code> <Tag tone={DECIDED[state] ?? "plain"}>{state}</Tag>
            {comment && <p>{comment}</p>}
          </li>
        ))}
      </ul>
    </section>
  );
}
