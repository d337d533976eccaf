import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attempt, AttemptState, Card, Turn } from "../live/turns.ts";
import { announcement, newestRun, newsOf, unfinished } from "./progress.ts";

function turn(...states: AttemptState[]): Turn {
  const attempts = states.map((state): Attempt => {
    const answers = state === "done" ? [{ id: "n", text: "Yes.", author: "desk", at: "", isEdited: false }] : [];
    return { key: state, run: `run-${state}`, state, cards: [], thinking: "", text: "", answers, end: null };
  });
  return { key: states.join(), message: null, attempts, facts: [] };
}

test("what goes on can be stopped, and the newest that has begun is looked into", () => {
  const turns = [turn("failed", "done"), turn("running"), turn("queued")];

  assert.deepEqual(unfinished(turns), ["run-running", "run-queued"]);
  assert.equal(newestRun(turns), "run-running");
  assert.equal(newestRun([]), null);
});

test("whoever cannot see it is told how it goes on, and what was answered", () => {
  const told = (state: AttemptState): string => announcement([turn(state)], "desk");

  assert.equal(told("running"), "desk is working.");
  assert.equal(told("waiting"), "desk asks for approval of a tool call.");
  assert.equal(told("failed"), "desk could not answer.");
  assert.equal(told("cancelled"), "Stopped.");
  assert.equal(told("done"), "desk says: Yes.");
  assert.equal(announcement([], "desk"), "");
});

test("there is news of a run whenever it got further", () => {
  const [begun] = turn("running").attempts;
  const card: Card = { kind: "thought", id: "n", text: "Let me look.", author: "desk", at: "", isEdited: false };
  const stages: Attempt[] = [
    begun!,
    { ...begun!, cards: [card] },
    { ...begun!, cards: [card], answers: [card] },
    { ...begun!, cards: [card], answers: [card], state: "done" },
  ];

  const news = stages.map((attempt) => newsOf([{ ...turn(), attempts: [attempt] }], "run-running"));

  assert.equal(new Set(news).size, stages.length);
  assert.equal(newsOf([turn("running")], "another"), "");
});
