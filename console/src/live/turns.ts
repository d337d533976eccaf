import type { Event } from "../api/schema.ts";
import type { Approval, End, Talk, Told, Underway } from "./talk.ts";

/** Something that was said. */
export interface Said {
  readonly id: string;
  readonly text: string;
  readonly author: string;
  readonly at: string;
  readonly isEdited: boolean;
}

/** What the agent said before it acted. */
export interface Thought extends Said {
  readonly kind: "thought";
}

/** What the agent did: a tool that it called, whether somebody was asked, and what it saw of it. */
export interface Action {
  readonly kind: "action";
  readonly id: string;
  readonly call: string;
  readonly tool: string;
  readonly arguments: unknown;
  readonly approvals: readonly Approval[];
  readonly observation: (Said & { readonly failed: boolean }) | null;
}

export type Card = Thought | Action;

export type AttemptState = "queued" | "running" | "waiting" | End["state"];

/** One try to answer a message: a run, and all that it said and did. */
export interface Attempt {
  readonly key: string;
  /** Its run; null: it was written by hand, or by another program. */
  readonly run: string | null;
  readonly state: AttemptState;
  readonly cards: readonly Card[];
  /** What is being thought and said now. */
  readonly thinking: string;
  readonly text: string;
  readonly answers: readonly Said[];
  readonly end: End | null;
}

/** A message and all that came of it. */
export interface Turn {
  readonly key: string;
  /** Null: it is earlier than what was read, or was deleted. */
  readonly message: Said | null;
  readonly attempts: readonly Attempt[];
  /** What it is made of: a turn of the same facts is the same turn. */
  readonly facts: readonly (Told | Underway)[];
}

interface Draft {
  key: string;
  message: Told | null;
  runs: Map<string, { run: string | null; nodes: Told[]; underway: Underway | null }>;
}

/** The turns of a talk, oldest first; those that did not change are the very ones of `before`. */
export function turnsOf(talk: Talk, before: readonly Turn[] = []): readonly Turn[] {
  const kept = new Map(before.map((turn) => [turn.key, turn]));
  return drafts(talk).map((draft) => {
    const attempts = [...draft.runs.values()].sort(
      (one, other) => (one.underway?.attempt ?? 1) - (other.underway?.attempt ?? 1),
    );
    const facts = [
      ...(draft.message ? [draft.message] : []),
      ...attempts.flatMap(({ nodes, underway }) => (underway ? [...nodes, underway] : nodes)),
    ];
    const same = kept.get(draft.key);
    if (same && same.facts.length === facts.length && same.facts.every((fact, index) => fact === facts[index])) {
      return same;
    }
    return {
      key: draft.key,
      message: draft.message && said(draft.message, draft.message.parts[0]!),
      attempts: attempts.map(({ run, nodes, underway }) => attempt(`${draft.key}/${run}`, run, nodes, underway)),
      facts,
    };
  });
}

function drafts(talk: Talk): Draft[] {
  const turns: Draft[] = [];
  const byMessage = new Map<string, Draft>();
  const byRun = new Map<string, Draft>();
  const open = (key: string, message: Told | null): Draft => {
    const draft: Draft = { key, message, runs: new Map() };
    turns.push(draft);
    return draft;
  };
  /** The turn of a run; where its message is not known, the first after all answers that has none, or the last. */
  const turnOf = (run: string, underway: Underway | null): Draft => {
    const known = byRun.get(run) ?? byMessage.get(underway?.trigger ?? "");
    const unanswered = turns[turns.findLastIndex(({ runs }) => runs.size > 0) + 1] ?? turns.at(-1);
    const turn = known ?? (underway?.trigger ? undefined : unanswered) ?? open(run, null);
    byRun.set(run, turn);
    return turn;
  };

  const nodes = [...talk.nodes.values()].filter(({ seq, parts }) => seq >= talk.first && parts[0]?.kind !== "delete");
  for (const node of nodes.sort((one, other) => one.seq - other.seq)) {
    if (node.parts[0]?.kind === "message") {
      byMessage.set(node.id, open(node.id, node));
      continue;
    }
    const run = node.parts[0]?.run_id ?? null;
    const underway = talk.runs.get(run ?? "") ?? null;
    const turn = run === null ? (turns.at(-1) ?? open(node.id, null)) : turnOf(run, underway);
    const entry = turn.runs.get(run ?? "") ?? { run, nodes: [], underway };
    entry.nodes.push(node);
    turn.runs.set(run ?? "", entry);
  }
  for (const underway of talk.runs.values()) {
    const isEarlier = underway.trigger !== null && !byMessage.has(underway.trigger);
    if (!byRun.has(underway.id) && !isEarlier) {
      turnOf(underway.id, underway).runs.set(underway.id, { run: underway.id, nodes: [], underway });
    }
  }
  return turns;
}

function attempt(key: string, run: string | null, nodes: readonly Told[], underway: Underway | null): Attempt {
  const cards: Card[] = [];
  const answers: Said[] = [];
  for (const node of nodes) {
    for (const part of node.parts) {
      if (part.kind === "thought") {
        cards.push({ kind: "thought", ...said(node, part) });
      } else if (part.kind === "action") {
        cards.push(actionOf(`${node.id}/${part.call_id}`, part));
      } else if (part.kind === "observation") {
        observe(cards, node, part);
      } else if (part.kind === "answer") {
        answers.push(said(node, part));
      }
    }
  }
  for (const approval of underway?.approvals ?? []) {
    ask(cards, approval);
  }
  const { thinking = "", text = "", end = null } = underway ?? {};
  return { key, run, state: stateOf(underway), cards, thinking, text, answers, end };
}

function stateOf(underway: Underway | null): AttemptState {
  if (underway === null) {
    return "done"; // of another conversation that this one was forked from, or long ago
  }
  if (underway.end) {
    return underway.end.state;
  }
  if (underway.approvals.some(({ decision }) => decision === null)) {
    return "waiting";
  }
  return underway.begun ? "running" : "queued";
}

function actionOf(id: string, part: Event): Action {
  return {
    kind: "action",
    id,
    call: part.call_id ?? "",
    tool: part.tool ?? "",
    arguments: part.arguments,
    approvals: [],
    observation: null,
  };
}

/** Ids of calls are a step's own: the first call that has not been answered is meant. */
function observe(cards: Card[], node: Told, part: Event): void {
  const observation = { ...said(node, part), failed: part.failed ?? false };
  const index = cards.findIndex(
    (card) => card.kind === "action" && card.call === part.call_id && card.observation === null,
  );
  const card = cards[index];
  if (card?.kind === "action") {
    cards[index] = { ...card, observation };
  } else {
    cards.push({ ...actionOf(node.id, part), observation });
  }
}

function ask(cards: Card[], approval: Approval): void {
  const { call, tool, reason } = approval;
  const isMeant = (card: Card): card is Action => card.kind === "action" && card.call === call && card.tool === tool;
  const free = cards.findIndex((card) => isMeant(card) && card.approvals.every((each) => each.reason !== reason));
  const index = free >= 0 ? free : cards.findLastIndex(isMeant);
  const card = cards[index];
  if (card?.kind === "action") {
    cards[index] = { ...card, approvals: [...card.approvals, approval] };
  } else {
    const { id, arguments: given } = approval;
    cards.push({ kind: "action", id, call, tool, arguments: given, approvals: [approval], observation: null });
  }
}

function said(node: Told, part: Event): Said {
  return {
    id: node.id,
    text: part.text ?? "",
    author: part.author ?? "",
    at: part.at,
    isEdited: node.version > 1,
  };
}
