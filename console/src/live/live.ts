import { generateNewSessionId } from "chat-session";
import { call } from "../api/client.ts";
import { Problem } from "../api/problem.ts";
import { stale } from "../api/queries.ts";
import type { AgentRun, Event } from "../api/schema.ts";
import { diagnose, refusal, tooLarge } from "./diagnosis.ts";
import { type Frame, type Ready, said } from "./frames.ts";
import { type Line, type LineState, openLine } from "./line.ts";
import { type Outbox, deliver, overhear, post, refuse, unread, unsent, without } from "./outbox.ts";
import { socketTo } from "./socket.ts";
import { SILENCE, type Talk, expect, hear, recall } from "./talk.ts";
import { type Turn, turnsOf } from "./turns.ts";

const PAGE = 60; // nodes read at once
const RUNS = 100;
const MOMENT = 40; // milliseconds for which frames are gathered: nobody reads faster
const BACK = "holdfast:back"; // told by the shell when a server that was away answers again
const LINGER = 2_000; // for which a talk stays open that nobody looks at

/** What a screen shows of a conversation that goes on. */
export interface Live {
  readonly line: LineState;
  readonly conversation: string | null;
  /** The agent that the session is with, where that is another. */
  readonly elsewhere: string | null;
  readonly turns: readonly Turn[];
  readonly outbox: Outbox;
  /** Whether what was said before is here: none of it yet, some, or all. */
  readonly past: "none" | "some" | "all";
  readonly problem: Problem | null;
}

/** A conversation with an agent, which goes on as long as somebody looks at it. */
export interface Conversation {
  subscribe: (listener: () => void) => () => void;
  now: () => Live;
  say: (text: string) => void;
  /** Take a letter back that the server refused. */
  takeBack: (key: string) => void;
  readEarlier: () => Promise<void>;
  /** Know of a run that was just made. */
  expectRun: (run: AgentRun) => void;
  reconnect: () => void;
}

const conversations = new Map<string, Conversation>();

/** The conversation of a user's session with an agent; whoever asks for the same gets the same. */
export function conversation(user: string, agent: string, session: string): Conversation {
  const key = JSON.stringify([user, agent, session]);
  let found = conversations.get(key);
  if (!found) {
    found = begin(user, agent, session, () => conversations.delete(key));
    conversations.set(key, found);
  }
  return found;
}

function begin(user: string, agent: string, session: string, forget: () => void): Conversation {
  let talk: Talk = SILENCE;
  let live: Live = {
    line: { kind: "connecting" },
    conversation: null,
    elsewhere: null,
    turns: [],
    outbox: [],
    past: "none",
    problem: null,
  };
  let line: Line | null = null;
  let gathered: Event[] = [];
  let gathering: ReturnType<typeof setTimeout> | undefined;
  let leaving: ReturnType<typeof setTimeout> | undefined;
  let asking = false;
  const listeners = new Set<() => void>();

  const show = (changes: Partial<Live>): void => {
    live = { ...live, ...changes };
    for (const listener of listeners) {
      listener();
    }
  };
  const tell = (next: Talk, changes: Partial<Live> = {}): void => {
    talk = next;
    const outbox = unread(changes.outbox ?? live.outbox, talk.nodes);
    show({ ...changes, outbox, turns: turnsOf(talk, live.turns) });
  };

  const settle = (): void => {
    clearTimeout(gathering);
    gathering = undefined;
    const events = gathered;
    gathered = [];
    const messages = events.filter((event) => event.kind === "message" && (event.version ?? 1) === 1);
    const outbox = messages.reduce((letters, message) => overhear(letters, message.text ?? ""), live.outbox);
    tell(hear(talk, events), { outbox });
    if ([...talk.runs.values()].some((run) => run.trigger === null)) {
      void askForRuns();
    }
  };
  const take = (frame: Frame): void => {
    if (frame.kind === "pong") {
      return;
    }
    if (frame.kind === "ready") {
      greet(frame);
    } else if (frame.kind === "sent") {
      settle();
      tell(expect(talk, frame), { outbox: deliver(live.outbox, frame.key ?? "", frame.node_id) });
    } else if (frame.kind === "queued") {
      void stale("GET /api/agents"); // which says who is served
    } else if (frame.kind === "refused") {
      show({ outbox: refuse(live.outbox, frame.key ?? "", refusal(frame)) });
    } else {
      gathered.push(frame);
      gathering ??= setTimeout(settle, MOMENT);
    }
  };
  const greet = (ready: Ready): void => {
    if (live.conversation !== null && live.conversation !== ready.conversation_id) {
      // The one before was removed, and this is another of its name.
      gathered = [];
      tell(SILENCE, { conversation: null, past: "none" });
      line?.redial();
      return;
    }
    if (talk.cursor === null) {
      talk = { ...talk, cursor: ready.cursor };
      show({ conversation: ready.conversation_id, past: "none" });
      void readEarlier();
    }
  };

  const askForRuns = async (): Promise<void> => {
    const id = live.conversation;
    if (asking || id === null) {
      return;
    }
    asking = true;
    try {
      const { runs } = await call("GET /api/runs", { query: { conversation: id, limit: RUNS } });
      tell(recall(talk, { runs }));
    } catch {
      // They are shown where they seem to belong, and asked for with the next event.
    } finally {
      asking = false;
    }
  };
  const readEarlier = async (): Promise<void> => {
    const id = live.conversation;
    if (id === null) {
      return;
    }
    try {
      const isFirst = live.past === "none";
      const query = isFirst ? { limit: PAGE } : { before: talk.first, limit: PAGE };
      const [{ nodes, cursor }, { runs }] = await Promise.all([
        call("GET /api/conversations/{id}/nodes", { path: { id }, query }),
        isFirst ? call("GET /api/runs", { query: { conversation: id, limit: RUNS } }) : { runs: [] },
      ]);
      if (id === live.conversation) {
        const past = cursor === null ? "all" : "some";
        tell(recall(talk, { nodes, runs, first: past === "all" ? 0 : nodes[0]!.seq }), { past, problem: null });
      }
    } catch (error) {
      show({ problem: Problem.from(error) });
    }
  };

  const flush = (): void => {
    for (const { key, text } of unsent(live.outbox)) {
      line?.say(said(text, key));
    }
  };
  const open = (): void => {
    line = openLine({
      dial: () => {
        settle(); // what was heard says from where to go on
        return socketTo(agent, session, talk.cursor);
      },
      hear: take,
      changed: (state) => {
        show({ line: state });
        if (state.kind === "open") {
          flush();
        }
      },
      choked: () => {
        const [letter] = unsent(live.outbox);
        show({ outbox: letter ? refuse(live.outbox, letter.key, tooLarge()) : live.outbox });
      },
      diagnose: async () => {
        const found = await diagnose(user, agent, session);
        if (found?.conversation && live.conversation === null) {
          show({ conversation: found.conversation });
          void readEarlier();
        }
        show({ elsewhere: found?.agent ?? null });
        return found?.problem ?? null;
      },
    });
  };
  const leave = (): void => {
    if (listeners.size === 0 && (unsent(live.outbox).length === 0 || live.line.kind === "ended")) {
      line?.close();
      line = null;
      forget();
    } else if (listeners.size === 0) {
      leaving = setTimeout(leave, LINGER);
    }
  };
  const reconnect = (): void => line?.redial();
  const back = (): void => {
    if (live.line.kind === "waiting") {
      reconnect();
    }
  };

  return {
    subscribe: (listener) => {
      clearTimeout(leaving);
      listeners.add(listener);
      if (line === null) {
        open();
      }
      addEventListener("online", reconnect);
      document.addEventListener(BACK, back);
      return () => {
        listeners.delete(listener);
        removeEventListener("online", reconnect);
        document.removeEventListener(BACK, back);
        leaving = setTimeout(leave, LINGER);
      };
    },
    now: () => live,
    say: (text) => {
      const key = generateNewSessionId();
      show({ outbox: post(live.outbox, key, text) });
      line?.say(said(text, key));
    },
    takeBack: (key) => show({ outbox: without(live.outbox, key) }),
    readEarlier,
    expectRun: (run) => tell(recall(talk, { runs: [run] })),
    reconnect,
  };
}
