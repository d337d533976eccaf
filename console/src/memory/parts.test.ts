import assert from "node:assert/strict";
import { test } from "node:test";
import type { ScoreParts } from "../api/schema.ts";
import { PARTS, explained, place, scaleOf, segments, written } from "./parts.ts";

const NONE: ScoreParts = {
  vector: 0,
  words: 0,
  neighbours: 0,
  conversation: 0,
  author: 0,
  date: 0,
  recency: 0,
  importance: 0,
  trust: 0,
  graph: 0,
};

function hit(given: Partial<ScoreParts>): { score: number; parts: ScoreParts } {
  const parts = { ...NONE, ...given };
  return { parts, score: Object.values(parts).reduce((total, each) => total + each, 0) };
}

function total(shares: readonly { units: number }[]): number {
  return shares.reduce((sum, { units }) => sum + units, 0);
}

test("shown parts add up to the shown score, and none is off by a whole unit of the last digit", () => {
  let seed = 7;
  const random = (): number => (seed = (seed * 48271) % 2147483647) / 2147483647 - 0.3;
  for (let round = 0; round < 2000; round++) {
    const given = hit(Object.fromEntries(PARTS.map(({ name }) => [name, random() < 0.2 ? 0 : random()])));

    const { units, shares } = explained(given);

    assert.equal(total(shares), units);
    assert.equal(units, Math.round(given.score * 10_000));
    for (const share of shares) {
      assert.ok(Math.abs(share.units - (given.parts[share.name] ?? 0) * 10_000) < 1);
    }
  }
});

test("three equal thirds of a unit are shown as one", () => {
  const third = 0.0001 / 3;

  const { units, shares } = explained(hit({ vector: third, words: third, trust: third }));

  assert.deepEqual([units, shares], [1, [{ name: "vector", units: 1 }]]);
});

test("only parts that are not zero are shown, in the order of all", () => {
  const { shares } = explained(hit({ trust: 0.1, vector: 0.2, recency: 0.00001 }));

  assert.deepEqual(
    shares.map(({ name }) => name),
    ["vector", "trust"],
  );
});

test("what adds stands right of zero and what takes away left of it, with no gap and no overlap", () => {
  const scored = explained(hit({ vector: 0.3, neighbours: -0.1, conversation: -0.05, trust: 0.1 }));
  const scale = scaleOf([scored]);

  const drawn = Object.fromEntries(segments(scored, scale).map((each) => [each.name, [each.from, each.length]]));

  const zero = place(0, scale);
  near(zero, 0.15 / 0.55);
  near(drawn["vector"]![0]!, zero);
  near(drawn["trust"]![0]!, zero + drawn["vector"]![1]!);
  near(drawn["trust"]![0]! + drawn["trust"]![1]!, 1);
  near(drawn["neighbours"]![0]! + drawn["neighbours"]![1]!, zero);
  near(drawn["conversation"]![0]! + drawn["conversation"]![1]!, drawn["neighbours"]![0]!);
  near(drawn["conversation"]![0]!, 0);
  near(place(scored.units, scale), zero + 0.25 / 0.55);
});

test("bars beside each other share one scale, on which lengths compare", () => {
  const [high, low] = [explained(hit({ vector: 0.8 })), explained(hit({ vector: 0.2, words: -0.2 }))];
  const scale = scaleOf([high, low]);

  assert.deepEqual(scale, { lowest: -2000, highest: 8000 });
  near(segments(high, scale)[0]!.length, 0.8);
  near(segments(low, scale)[0]!.length, 0.2);
});

test("a score of nothing is a bar without length", () => {
  const nothing = explained(hit({}));

  assert.deepEqual(segments(nothing, scaleOf([nothing])), []);
  assert.equal(place(0, scaleOf([])), 0);
});

test("numbers are written with four digits, and a minus that is one", () => {
  assert.deepEqual([written(6730), written(-33), written(0)], ["0.6730", "\u22120.0033", "0.0000"]);
});

function near(one: number, other: number): void {
  assert.ok(Math.abs(one - other) < 1e-9, `${one} is not ${other}`);
}
