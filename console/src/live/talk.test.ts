import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { AgentRun, Event, Node } from "../api/schema.ts";
import { type Frame, type Sent, readFrame } from "./frames.ts";
import { SILENCE, type Talk, expect, hear, recall } from "./talk.ts";
import { type Turn, turnsOf } from "./turns.ts";

// What a server said of a conversation in which all that can happen did, and what it then read of it.
const lines = readFileSync(new URL("recording.jsonl", import.meta.url), "utf8")
  .trimEnd()
  .split("\n");
const recorded = lines.map((line) => JSON.parse(line) as { kind: string; node: Node; run: AgentRun });
const frames = lines
  .map((line) => readFrame(line)!)
  .filter(({ kind }) => kind !== ("node" as string) && kind !== ("run" as string));
const nodes = recorded.filter(({ kind }) => kind === "node").map(({ node }) => node);
const runs = recorded.filter(({ kind }) => kind === "run").map(({ run }) => run);
const isEvent = (frame: Frame): frame is Event => "cursor" in frame && frame.kind !== "ready";
const events = frames.filter(isEvent);
const whole = told(SILENCE, frames);

function told(talk: Talk, heard: readonly Frame[]): Talk {
  return heard.reduce(
    (so, frame) => (frame.kind === "sent" ? expect(so, frame as Sent) : isEvent(frame) ? hear(so, [frame]) : so),
    talk,
  );
}

/** A turn in a line or two: its message, and of each attempt how it went and what it said. */
function gist({ message, attempts }: Turn): unknown[] {
  return [
    message?.text ?? null,
    ...attempts.map(({ state, cards, answers, text }) => [
      state,
      ...cards.map((card) =>
        card.kind === "thought"
          ? `thinks ${card.text}`
          : `uses ${card.tool}${card.approvals.map(({ decision }) => ` ${decision}`).join("")}: ${card.observation?.text}`,
      ),
      ...answers.map((answer) => answer.text),
      ...(text ? [`… ${text}`] : []),
    ]),
  ];
}

const GIST = [
  [
    "Where is my parcel?",
    ["done", "thinks Let me look.", 'uses track: {"parcel":"AB-1","place":"Cologne"}', "It is in Bonn."],
  ],
  ["refund it", ["done", "uses refund approved: 5.00 euros for AB-1"]],
  ["refund again", ["done", "uses refund denied: A person did not allow this call.", "That is settled."]],
  ["count", ["cancelled", "one t"]],
  ["hello", ["done", "Good morning."]],
  ["wrong", ["failed"], ["failed"]],
];

test("events make turns: messages with all that came of them", () => {
  const turns = turnsOf(whole);

  assert.deepEqual(turns.map(gist), GIST);
});

test("wherever a socket is cut, what is told after the cursor gives the same", () => {
  for (let cut = 0; cut <= frames.length; cut += 1) {
    const before = told(SILENCE, frames.slice(0, cut));
    const rest = events.slice(frames.slice(0, cut).filter(isEvent).length);

    assert.deepEqual(hear(before, rest).nodes, whole.nodes);
    assert.deepEqual(turnsOf(recall(hear(before, rest), { runs })).map(gist), GIST);
  }
});

test("what is told twice, or late, changes nothing", () => {
  for (let cut = 0; cut <= frames.length; cut += 1) {
    const before = told(SILENCE, frames.slice(0, cut));

    assert.equal(hear(before, before === SILENCE ? [] : frames.slice(0, cut).filter(isEvent)), before);
  }
  assert.deepEqual(
    told(
      SILENCE,
      frames.flatMap((frame) => [frame, frame]),
    ),
    whole,
  );
});

test("many events at once are as good as one by one", () => {
  assert.deepEqual(hear(SILENCE, events).nodes, whole.nodes);
});

test("what is read of the past is what events would have told", () => {
  const read = turnsOf(recall(SILENCE, { nodes, runs }));

  const undecided = (text: unknown): unknown =>
    typeof text === "string" ? text.replace(/ (approved|denied):/, ":") : text;
  const expected = GIST.map(([message, ...attempts]) => [
    message,
    ...attempts.map((each) => (each as unknown[]).map(undecided)),
  ]);
  assert.deepEqual(read.map(gist), expected);
  assert.deepEqual(read[0]!.attempts[0]!.end, turnsOf(whole)[0]!.attempts[0]!.end);
});

test("the past may be read at any moment of what goes on", () => {
  for (let cut = 0; cut <= frames.length; cut += 1) {
    const mixed = told(recall(told(SILENCE, frames.slice(0, cut)), { nodes, runs }), frames.slice(cut));

    assert.deepEqual(turnsOf(mixed).map(gist), GIST);
  }
});

test("an answer takes the place of what was streamed of it", () => {
  const place = frames.findIndex(({ kind }) => kind === "answer");

  const [streaming] = turnsOf(told(SILENCE, frames.slice(0, place)));
  const [answered] = turnsOf(told(SILENCE, frames.slice(0, place + 1)));

  assert.equal(streaming!.attempts[0]!.text, "It is in Cologne.");
  assert.equal(streaming!.attempts[0]!.state, "running");
  assert.deepEqual([answered!.attempts[0]!.text, answered!.attempts[0]!.answers[0]!.text], ["", "It is in Cologne."]);
});

test("a reset forgets what was streamed, and may bring the beginning of what comes instead", () => {
  const talk = hear(SILENCE, [
    event("token", "0.1", { text: "It is " }),
    event("thinking", "0.2", { text: "Hm." }),
    event("token", "0.3", { text: "No: ", reset: true }),
    event("token", "0.4", { text: "it was." }),
  ]);

  assert.deepEqual(["No: it was.", ""], [talk.runs.get("run")!.text, talk.runs.get("run")!.thinking]);
});

test("an edit is told once, and what was there before does not come back", () => {
  const first = event("answer", "1.0", { node_id: "node", seq: 1, text: "Cologne" });
  const edited = event("answer", "2.0", { node_id: "node", seq: 1, version: 2, text: "Bonn" });

  const read = recall(hear(SILENCE, [first, edited]), { nodes: [node({ content: "Cologne", version: 1 })] });

  assert.deepEqual(
    turnsOf(read)[0]!.attempts[0]!.answers.map(({ text, isEdited }) => [text, isEdited]),
    [["Bonn", true]],
  );
});

test("an edit of what was not read yet is shown when that is", () => {
  const old = event("message", "9.0", { run_id: null, node_id: "old", seq: 1, version: 2, text: "edited" });
  const newest = { nodes: [node({ id: "new", seq: 61, content: "hi" })], first: 61 };

  const before = hear(recall(SILENCE, newest), [old]);
  const after = recall(before, { nodes: [node({ id: "second", seq: 2, content: "yes" })], first: 0 });

  assert.deepEqual(turnsOf(before).map(gist), [[null, ["done", "hi"]]]);
  assert.deepEqual(turnsOf(after).map(gist), [["edited", ["done", "yes", "hi"]]]);
});

test("an edit does not end what is being said", () => {
  const talk = hear(SILENCE, [
    event("token", "1.1", { text: "It " }),
    event("thought", "2.1", { node_id: "node", seq: 1, version: 2, text: "edited" }),
    event("token", "2.2", { text: "is" }),
  ]);

  assert.equal(talk.runs.get("run")!.text, "It is");
});

test("a run waits while somebody is asked, and goes on when they decided", () => {
  const asked = event("approval", "0.1", { approval_id: "a", call_id: "c", tool: "refund", arguments: { euros: 5 } });
  const decided = event("decision", "0.2", {
    approval_id: "a",
    call_id: "c",
    tool: "refund",
    decision: "approved",
    author: "ann",
  });

  const [waiting] = turnsOf(hear(SILENCE, [asked]));
  const [goesOn] = turnsOf(hear(SILENCE, [asked, decided]));

  assert.deepEqual(gist(waiting!), [null, ["waiting", "uses refund null: undefined"]]);
  assert.deepEqual(gist(goesOn!), [null, ["running", "uses refund approved: undefined"]]);
  assert.deepEqual(goesOn!.attempts[0]!.cards[0], {
    ...waiting!.attempts[0]!.cards[0],
    approvals: [
      {
        id: "a",
        call: "c",
        tool: "refund",
        arguments: { euros: 5 },
        reason: "listed",
        decision: "approved",
        by: "ann",
      },
    ],
  });
});

test("calls of several steps may have the same id", () => {
  const call = { call_id: "call-1", tool: "track" };
  const talk = hear(SILENCE, [
    event("action", "1.0", { node_id: "1", seq: 1, ...call }),
    event("observation", "2.0", { node_id: "2", seq: 2, text: "Cologne", ...call }),
    event("action", "3.0", { node_id: "3", seq: 3, ...call }),
    event("observation", "4.0", { node_id: "4", seq: 4, text: "Bonn", failed: true, ...call }),
  ]);

  assert.deepEqual(gist(turnsOf(talk)[0]!), [null, ["running", "uses track: Cologne", "uses track: Bonn"]]);
});

test("a run whose message is not known answers the first that has no answer", () => {
  const talk = hear(SILENCE, [
    event("message", "1.0", { run_id: null, node_id: "1", seq: 1, text: "one" }),
    event("message", "2.0", { run_id: null, node_id: "2", seq: 2, text: "two" }),
    event("token", "2.1", { run_id: "first", text: "1" }),
    event("answer", "3.1", { run_id: "first", node_id: "3", seq: 3, text: "1" }),
    event("token", "3.2", { run_id: "second", text: "2" }),
  ]);

  assert.deepEqual(turnsOf(talk).map(gist), [
    ["one", ["running", "1"]],
    ["two", ["running", "… 2"]],
  ]);
});

test("a message that waits for its turn is queued, and so is a run that is tried again", () => {
  const message = event("message", "1.0", { run_id: null, node_id: "node", seq: 1, text: "one" });
  const sent = { kind: "sent", run_id: "run", node_id: "node" } as const;
  const failed = event("error", "1.1", { state: "failed", error: { what: "no" } });

  const queued = expect(hear(SILENCE, [message]), sent);
  const again = recall(hear(queued, [failed]), {
    runs: [{ ...runs[0]!, id: "again", trigger: "node", number: 2, state: "queued", error: null }],
  });

  assert.deepEqual(turnsOf(queued).map(gist), [["one", ["queued"]]]);
  assert.deepEqual(turnsOf(again).map(gist), [["one", ["failed"], ["queued"]]]);
});

test("what was forked from another conversation, or written by hand, is shown and does not go on", () => {
  const said = [
    node({ id: "1", seq: 1, context: "text:user:ann:b", content: "hi" }),
    node({ id: "2", seq: 2, payload: { run: "elsewhere", tool_calls: [{ id: "c", name: "track", arguments: {} }] } }),
    node({ id: "3", seq: 3, context: "text:user:ann:b", content: "still there?" }),
    node({ id: "4", seq: 4, content: "yes" }),
  ];

  const turns = turnsOf(recall(SILENCE, { nodes: said }));

  assert.deepEqual(turns.map(gist), [
    ["hi", ["done", "uses track: undefined"]],
    ["still there?", ["done", "yes"]],
  ]);
  assert.equal(turns[0]!.message!.author, "ann:b");
});

test("turns that did not change stay the very same", () => {
  const talk = recall(told(SILENCE, frames.slice(0, -2)), { runs });
  const before = turnsOf(talk);

  const after = turnsOf(recall(told(talk, frames.slice(-2)), { runs }), before);

  assert.deepEqual(
    after.map((turn, index) => turn === before[index]),
    [false, false, true, true, true, true],
  );
});

function event(kind: Event["kind"], cursor: string, rest: Partial<Event>): Event {
  return { kind, cursor, at: "2026-01-31T12:00:00Z", run_id: "run", ...rest };
}

function node(given: Partial<Node>): Node {
  return {
    ...nodes[0]!,
    id: "node",
    seq: 1,
    version: 1,
    context: "text:agent:desk",
    content: "",
    payload: null,
    ...given,
  };
}
