import type { Problem } from "../api/problem.ts";

/** A message on its way to the server. */
export interface Letter {
  readonly key: string;
  readonly text: string;
  /** The node that the server stored it as, since it said so. */
  readonly node: string | null;
  /** Whether it was heard in the conversation before the server said that it is stored. */
  readonly isHeard: boolean;
  /** Why the server did not take it. */
  readonly problem: Problem | null;
}

export type Outbox = readonly Letter[];

export function post(outbox: Outbox, key: string, text: string): Outbox {
  return [...outbox, { key, text, node: null, isHeard: false, problem: null }];
}

/** Without the letter of this key. */
export function without(outbox: Outbox, key: string): Outbox {
  return outbox.filter((letter) => letter.key !== key);
}

export function deliver(outbox: Outbox, key: string, node: string): Outbox {
  return outbox.map((letter) => (letter.key === key ? { ...letter, node } : letter));
}

export function refuse(outbox: Outbox, key: string, problem: Problem): Outbox {
  return outbox.map((letter) => (letter.key === key ? { ...letter, problem } : letter));
}

/** With the first letter of this text heard: nobody should see it twice. */
export function overhear(outbox: Outbox, text: string): Outbox {
  const heard = unsent(outbox).find((letter) => letter.text === text && !letter.isHeard);
  return outbox.map((letter) => (letter === heard ? { ...letter, isHeard: true } : letter));
}

/** Without those that are read in the conversation by now. */
export function unread(outbox: Outbox, nodes: ReadonlyMap<string, unknown>): Outbox {
  return outbox.filter(({ node }) => node === null || !nodes.has(node));
}

/** What the server has to be told, again after every break: it says of each whether it took it. */
export function unsent(outbox: Outbox): Outbox {
  return outbox.filter(({ node, problem }) => node === null && problem === null);
}
