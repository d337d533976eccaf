import assert from "node:assert/strict";
import { test } from "node:test";
import { SIZE, askedFor, isFar, windowOf, windowsBetween } from "./windows.ts";

test("every event is in the window that is asked for it", () => {
  for (const seq of [1, 2, SIZE - 1, SIZE, SIZE + 1, 2 * SIZE, 49_999, 50_000]) {
    const { since, limit } = askedFor(windowOf(seq));

    assert.ok(since < seq && seq <= since + limit, `${seq} is not in ${since} to ${since + limit}`);
  }
});

test("the beginning counts to the first window", () => {
  assert.equal(windowOf(0), 0);
});

test("windows between two are all of them", () => {
  assert.deepEqual(windowsBetween(3, 5), [3, 4, 5]);
  assert.deepEqual(windowsBetween(3, 3), [3]);
  assert.deepEqual(windowsBetween(3, 2), []);
});

test("however far one goes, few windows are kept", () => {
  const kept = windowsBetween(0, 500).filter((window) => !isFar(askedFor(window).since, 250, 251));

  assert.deepEqual(kept, windowsBetween(240, 261));
});
