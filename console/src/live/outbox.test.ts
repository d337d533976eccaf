import assert from "node:assert/strict";
import { test } from "node:test";
import { Problem } from "../api/problem.ts";
import { deliver, overhear, post, refuse, unread, unsent, without } from "./outbox.ts";

const two = post(post([], "a", "hello"), "b", "hello");
const keys = (outbox: readonly { key: string }[]): string[] => outbox.map(({ key }) => key);

test("a letter is told again until the server says that it took it, or why not", () => {
  const refused = refuse(two, "b", new Problem(0, "busy", "busy"));

  assert.deepEqual(keys(unsent(two)), ["a", "b"]);
  assert.deepEqual(keys(unsent(deliver(two, "a", "node-1"))), ["b"]);
  assert.deepEqual(keys(unsent(refused)), ["a"]);
  assert.deepEqual(keys(without(refused, "b")), ["a"]);
});

test("a letter is shown until it is read in the conversation, and then no more", () => {
  const taken = deliver(two, "a", "node-1");

  assert.deepEqual(keys(unread(taken, new Map())), ["a", "b"]);
  assert.deepEqual(keys(unread(taken, new Map([["node-1", {}]]))), ["b"]);
});

test("of letters that say the same, each is heard once", () => {
  const heard = overhear(two, "hello");

  assert.deepEqual(
    heard.map(({ isHeard }) => isHeard),
    [true, false],
  );
  assert.ok(overhear(heard, "hello").every(({ isHeard }) => isHeard));
  assert.deepEqual(overhear(two, "something else"), two);
});
