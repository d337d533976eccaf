import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { AgentRun } from "../api/schema.ts";
import { Button } from "../design/Button.tsx";
import { useKeys } from "../design/keys.ts";
import { EmptyState, ErrorState, Loading } from "../design/States.tsx";
import type { Conversation, Live } from "../live/live.ts";
import type { Letter } from "../live/outbox.ts";
import type { Turn } from "../live/turns.ts";
import { LetterView } from "./LetterView.tsx";
import styles from "./Room.module.css";
import { TurnView } from "./TurnView.tsx";
import { useFollowing } from "./following.ts";

const BEGINNINGS = ["What can you do?", "My name is Ann, and I prefer tea. Please remember that."];

interface Props {
  live: Live;
  talk: Conversation;
  agent: string;
  isServed: boolean;
  session: string;
  chosen: string | null;
  choose: (run: string) => void;
  retried: (run: AgentRun) => void;
  takeBack: (letter: Letter) => void;
  suggest: (text: string) => void;
}

/** All that was said, the newest at the end, where it stays until somebody scrolls up. */
export function Transcript({
  live,
  talk,
  agent,
  isServed,
  session,
  chosen,
  choose,
  retried,
  takeBack,
  suggest,
}: Props) {
  const { turns, past } = live;
  const letters = live.outbox.filter(({ isHeard }) => !isHeard);
  const isEmpty = turns.length === 0 && letters.length === 0;
  const [isReading, setIsReading] = useState(false);
  const { scroller, content, isAtEnd, goToEnd, holdStill } = useFollowing();

  const readEarlier = async (): Promise<void> => {
    setIsReading(true);
    holdStill();
    await talk.readEarlier();
    setIsReading(false);
  };
  const step = (by: number): void => {
    const articles = [...(content.current?.querySelectorAll("article") ?? [])];
    const focused = articles.findIndex((article) => article.contains(document.activeElement));
    const next = focused < 0 ? (by > 0 ? 0 : articles.length - 1) : focused + by;
    articles[Math.min(articles.length - 1, Math.max(0, next))]?.focus();
  };
  useKeys({ j: () => step(1), k: () => step(-1) });

  return (
    <div
      ref={scroller}
      className={styles.scroller}
      role="region"
      aria-label={`Conversation with ${agent}`}
      tabIndex={0}
    >
      <div ref={content} className={styles.content}>
        {live.problem && <ErrorState error={live.problem} retry={() => void talk.readEarlier()} />}
        {past === "none" && !live.problem && live.line.kind !== "ended" && <Loading what="messages" />}
        {past === "some" && (
          <Button className={styles.earlier} disabled={isReading} onClick={() => void readEarlier()}>
            Show earlier messages
          </Button>
        )}
        {past === "all" && isEmpty && (
          <EmptyState title={`Send a message to ${agent}`}>
            <p>The answer appears as it is written, with the agent's thoughts, tool calls and recalled memories.</p>
            <div className={styles.beginnings}>
              {BEGINNINGS.map((text) => (
                <Button key={text} className={styles.beginning} onClick={() => suggest(text)}>
                  {text}
                </Button>
              ))}
            </div>
          </EmptyState>
        )}
        {turns.map((turn) => (
          <TurnView
            key={turn.key}
            {...{ turn, agent, isServed, choose, retried }}
            chosen={isIn(turn, chosen) ? chosen : null}
          />
        ))}
        {letters.map((letter) => (
          <LetterView key={letter.key} letter={letter} takeBack={takeBack} />
        ))}
        {live.line.kind === "ended" && (
          <ErrorState error={live.line.problem} retry={live.elsewhere === null ? talk.reconnect : undefined} />
        )}
        {live.line.kind === "ended" && live.elsewhere !== null && (
          <Link
            className={styles.elsewhere}
            to="/chat/{-$agent}/{-$session}"
            params={{ agent: live.elsewhere, session }}
          >
            Continue with {live.elsewhere}
          </Link>
        )}
      </div>
      {!isAtEnd && (
        <Button className={styles.newest} onClick={goToEnd}>
          Jump to latest
        </Button>
      )}
    </div>
  );
}

/** Only the turn that has it is drawn again when another run is chosen. */
function isIn({ attempts }: Turn, chosen: string | null): boolean {
  return attempts.some(({ run }) => run === chosen);
}
