import type { Memory } from "../api/schema.ts";
import type { Tone } from "../design/Tag.tsx";

interface Condition {
  readonly word: string;
  readonly tone: Tone;
}

/** What holds a memory back from being recalled at a moment, or keeps it, in a word each. */
export function conditions(memory: Memory, now: Date): Condition[] {
  const isBy = (moment: string | null): boolean => moment !== null && Date.parse(moment) <= now.getTime();
  const all: (Condition | false)[] = [
    memory.pinned && { word: "pinned", tone: "good" },
    memory.buried && { word: "buried", tone: "warn" },
    isBy(memory.expires_at) && { word: "expired", tone: "warn" },
    isBy(memory.valid_to) && { word: "superseded", tone: "warn" },
    !isBy(memory.valid_from) && { word: "not yet valid", tone: "warn" },
  ];
  return all.filter((each) => each !== false);
}
