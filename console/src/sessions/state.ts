import type { StateChanged } from "../api/schema.ts";

/** What a conversation keeps, by name; a map, since a name may be anything: `__proto__` too. */
export type State = ReadonlyMap<string, unknown>;

/** What one step did to one name. */
export interface Difference {
  readonly name: string;
  readonly kind: "added" | "changed" | "removed";
  readonly before: unknown;
  readonly after: unknown;
}

/** The state after an event: the conversation's own, and what was written from here into its user's and its app's. */
interface Kept {
  readonly own: State;
  readonly shared: State;
}

const SHARED = /^(app|user):/;

/** The state after the event of this number; `own` is exactly what a fork there has. */
export function stateAt(changes: readonly StateChanged[], seq: number): Kept {
  const all = folded(changes.filter((change) => change.seq <= seq));
  return {
    own: new Map([...all].filter(([name]) => !SHARED.test(name))),
    shared: new Map([...all].filter(([name]) => SHARED.test(name))),
  };
}

/** What the event of this number changed, by name; a value that was set anew to the same is no difference. */
export function differencesAt(changes: readonly StateChanged[], seq: number): Difference[] {
  const made = changes.filter((change) => change.seq === seq);
  const before = folded(changes.filter((change) => change.seq < seq));
  const after = folded(made, before);
  const touched = new Set(made.flatMap(({ set, deleted }) => [...Object.keys(set), ...deleted]));
  return [...touched].sort().flatMap((name) => difference(name, before, after));
}

function folded(changes: readonly StateChanged[], from: State = new Map()): Map<string, unknown> {
  const state = new Map(from);
  for (const { set, deleted } of changes) {
    for (const [name, value] of Object.entries(set)) {
      state.set(name, value);
    }
    for (const name of deleted) {
      state.delete(name);
    }
  }
  return state;
}

function difference(name: string, before: State, after: State): Difference[] {
  const kind = !before.has(name) ? "added" : !after.has(name) ? "removed" : "changed";
  const values = { before: before.get(name), after: after.get(name) };
  const isNone = before.has(name) === after.has(name) && JSON.stringify(values.before) === JSON.stringify(values.after);
  return isNone ? [] : [{ name, kind, ...values }];
}
