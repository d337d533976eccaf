import type { KeyList, EnginePart } from "../api/schema.ts";

/** What is known so far; undefined: not yet, or not to this person. */
export interface Facts {
  readonly runs: readonly unknown[] | undefined;
  readonly owners: readonly unknown[] | undefined;
  readonly visits: readonly string[];
  readonly keys: KeyList["keys"] | undefined;
  readonly parts: readonly EnginePart[] | undefined;
}

export const STEPS = ["talk", "look", "remember", "model", "meaning", "programs"] as const;
export type Step = (typeof STEPS)[number];

/** What of it somebody has done who begins; each step is ticked by what is there, whoever did it. */
export function progress({ runs = [], owners = [], visits, keys = [], parts = [] }: Facts): Record<Step, boolean> {
  const works = (name: string): boolean => parts.some((part) => part.name === name && part.state === "ok");
  return {
    talk: runs.length > 0,
    look: visits.includes("sessions"),
    remember: owners.length > 0,
    model: works("model"),
    meaning: works("embeddings"),
    programs: keys.some(isOfProgram),
  };
}

/** The sessions of browsers are listed among the keys, too. */
export function isOfProgram({ kind }: KeyList["keys"][number]): boolean {
  return kind === "key";
}
