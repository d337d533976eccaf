import type { Hit, ScoreParts } from "../api/schema.ts";

export type PartName = keyof ScoreParts;

/** What each part of a score is, in the order in which they are drawn. */
export const PARTS: readonly { readonly name: PartName; readonly meaning: string }[] = [
  { name: "vector", meaning: "similarity of its meaning to the query" },
  { name: "words", meaning: "words in common with the query; rare words count more" },
  { name: "neighbours", meaning: "how much better the turns around it match" },
  { name: "conversation", meaning: "how much better the best of its conversation or day matches" },
  { name: "author", meaning: "the query names its author" },
  { name: "date", meaning: "the query asks about its date" },
  { name: "recency", meaning: "how recent it is, or how recently it was used" },
  { name: "importance", meaning: "how important it is" },
  { name: "trust", meaning: "how far it can be relied on" },
  { name: "graph", meaning: "what it is linked to" },
];

const DIGITS = 4;
const UNITS = 10 ** DIGITS;

/** A part of a score as it is shown: in whole units of the last digit. */
interface Share {
  readonly name: PartName;
  readonly units: number;
}

/** A score and its parts as they are shown; the units of the parts add up to those of the score. */
export interface Explained {
  readonly units: number;
  readonly shares: readonly Share[];
}

/** From where to where, in fractions of a bar's length. */
interface Segment extends Share {
  readonly from: number;
  readonly length: number;
}

/** The units that bars drawn beside each other have in common: from all that takes away to all that adds. */
export interface Scale {
  readonly lowest: number;
  readonly highest: number;
}

/**
 * The score and those of its parts that are not zero, rounded so that what is shown adds up: where rounding went
 * furthest astray it is undone, by one unit of the last digit each.
 */
export function explained({ score, parts }: Pick<Hit, "score" | "parts">): Explained {
  const exact = PARTS.map(({ name }) => ({ name, value: (parts?.[name] ?? 0) * UNITS }));
  const rounded = new Map(exact.map(({ name, value }) => [name, Math.round(value)]));
  const units = Math.round(score * UNITS);
  const missing = units - sum([...rounded.values()]);
  const step = Math.sign(missing);
  const astray = ({ name, value }: { name: PartName; value: number }): number => step * (value - rounded.get(name)!);
  for (const { name } of exact.toSorted((one, other) => astray(other) - astray(one)).slice(0, Math.abs(missing))) {
    rounded.set(name, rounded.get(name)! + step);
  }
  const shares = PARTS.map(({ name }) => ({ name, units: rounded.get(name)! }));
  return { units, shares: shares.filter((share) => share.units !== 0) };
}

/** A number of units as it is written. */
export function written(units: number): string {
  return (units / UNITS).toFixed(DIGITS).replace("-", "\u2212");
}

/** What all of these can be drawn on, so that their lengths compare. */
export function scaleOf(several: readonly Explained[]): Scale {
  return {
    lowest: Math.min(0, ...several.map(({ shares }) => sum(taken(shares)))),
    highest: Math.max(0, ...several.map(({ shares }) => sum(added(shares)))),
  };
}

/** The parts along a bar: what adds stands behind one another right of zero, what takes away left of it. */
export function segments({ shares }: Explained, scale: Scale): Segment[] {
  let right = 0;
  let left = 0;
  return shares.map((share) => {
    const start = share.units > 0 ? right : (left += share.units);
    right += Math.max(0, share.units);
    return { ...share, from: place(start, scale), length: length(Math.abs(share.units), scale) };
  });
}

/** Where a number of units is on a bar, as a fraction of its length. */
export function place(units: number, scale: Scale): number {
  return length(units - scale.lowest, scale);
}

function length(units: number, { lowest, highest }: Scale): number {
  return highest === lowest ? 0 : units / (highest - lowest);
}

function added(shares: readonly Share[]): number[] {
  return shares.map(({ units }) => Math.max(0, units));
}

function taken(shares: readonly Share[]): number[] {
  return shares.map(({ units }) => Math.min(0, units));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
