import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, getRouteApi } from "@tanstack/react-router";
import { useCallback, useRef, useState } from "react";
import { call } from "../api/client.ts";
import type { AgentEntry, AgentRun } from "../api/schema.ts";
import { Button } from "../design/Button.tsx";
import { complain } from "../design/toasts.ts";
import type { Letter } from "../live/outbox.ts";
import { useLive } from "../live/useLive.ts";
import { useMe } from "../shell/identity.ts";
import { Screen } from "../shell/Screen.tsx";
import { Announcer } from "./Announcer.tsx";
import { Composer } from "./Composer.tsx";
import { Connection } from "./Connection.tsx";
import { Inspector } from "./Inspector.tsx";
import { OtherSession } from "./OtherSession.tsx";
import styles from "./Room.module.css";
import { Transcript } from "./Transcript.tsx";
import { Unserved } from "./Unserved.tsx";
import { draftOf, keepDraft } from "./drafts.ts";
import { newestRun, newsOf, unfinished } from "./progress.ts";
import { activeSession, beginSession } from "./sessions.ts";
import { waysOf } from "./ways.ts";

const route = getRouteApi("/chat/{-$agent}/{-$session}");

interface Props {
  user: string;
  agent: string;
  session: string;
  agents: readonly AgentEntry[];
}

/** One session with one agent. */
export function Room({ user, agent, session, agents }: Props) {
  const navigate = route.useNavigate();
  const { run: asked } = route.useSearch();
  const mayTalk = useMe().scopes.includes("write");
  const { data: active = session } = useQuery({ ...activeSession(user, agent), enabled: mayTalk });
  const [live, talk] = useLive(user, agent, session);
  const [draft, setDraft] = useState(() => draftOf(user, agent, session));
  const [isOpen, setIsOpen] = useState(asked !== undefined);
  const field = useRef<HTMLTextAreaElement>(null);
  const chosen = asked ?? newestRun(live.turns);
  const underway = unfinished(live.turns);
  const isServed = agents.find(({ name }) => name === agent)?.served ?? true;

  const write = (text: string): void => {
    setDraft(text);
    keepDraft(user, agent, session, text);
  };
  const send = (): void => {
    if (draft.trim() !== "") {
      talk.say(draft);
      write("");
      if (asked !== undefined) {
        void navigate({ search: {}, replace: true });
      }
    }
  };
  const takeBack = (letter: Letter): void => {
    talk.takeBack(letter.key);
    write(draft === "" ? letter.text : `${letter.text}\n${draft}`);
    field.current?.focus();
  };
  const choose = useCallback(
    (run: string): void => {
      setIsOpen(true);
      void navigate({ search: { run }, replace: true });
    },
    [navigate],
  );
  const retried = useCallback((run: AgentRun): void => talk.expectRun(run), [talk]);
  const stop = useMutation({
    mutationFn: () => Promise.all(underway.map((id) => call("POST /api/runs/{id}/cancel", { path: { id } }))),
    onError: complain,
  });
  const begin = useMutation({
    mutationFn: () => beginSession(user, agent),
    onSuccess: (begun) => navigate({ params: { agent, session: begun }, search: {} }),
    onError: complain,
  });

  return (
    <Screen
      title="Chat"
      panes
      ways={waysOf({ agent, session, user, conversation: live.conversation, draft })}
      actions={
        <>
          <label className={styles.agent}>
            <span>Agent</span>
            <select
              aria-label="Agent"
              value={agent}
              onChange={(event) => {
                void navigate({ params: { agent: event.target.value, session: undefined }, search: {} });
              }}
            >
              {agents.every(({ name }) => name !== agent) && <option>{agent}</option>}
              {agents.map(({ name, description, served }) => (
                <option key={name} value={name} title={description}>
                  {served ? name : `${name} (not served)`}
                </option>
              ))}
            </select>
          </label>
          <Button disabled={begin.isPending || !mayTalk} onClick={() => begin.mutate()}>
            New session
          </Button>
          <Connection line={live.line} reconnect={talk.reconnect} />
          <Button className={styles.fold} aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
            Details
          </Button>
        </>
      }
    >
      <div className={styles.room} data-open={isOpen}>
        <div className={styles.talk}>
          {active !== session && live.line.kind !== "ended" && <OtherSession {...{ user, agent, session, active }} />}
          {!isServed && <Unserved agent={agent} agents={agents} />}
          <Transcript
            isServed={isServed}
            live={live}
            talk={talk}
            agent={agent}
            session={session}
            chosen={chosen}
            choose={choose}
            retried={retried}
            takeBack={takeBack}
            suggest={(text) => {
              write(text);
              field.current?.focus();
            }}
          />
          <Composer
            agent={agent}
            text={draft}
            write={write}
            send={send}
            stop={underway.length > 0 ? () => stop.mutate() : null}
            field={field}
            disabled={!mayTalk}
          />
        </div>
        <aside className={styles.inside} aria-label="Run details">
          <header className={styles.heading}>
            <h2>Run details</h2>
            <Button kind="quiet" className={styles.fold} onClick={() => setIsOpen(false)}>
              Close
            </Button>
          </header>
          <Inspector key={chosen} run={chosen} news={newsOf(live.turns, chosen)} />
          {live.conversation !== null && (
            <Link to="/sessions/{-$conversation}" params={{ conversation: live.conversation }}>
              Browse the events of this session
            </Link>
          )}
        </aside>
      </div>
      <Announcer live={live} agent={agent} />
    </Screen>
  );
}
