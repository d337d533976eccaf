/** Whether an event of this cursor is news to who has seen all up to another. */
export function isNews(cursor: string, seen: string | null): boolean {
  if (seen === null) {
    return true;
  }
  const [revision, n, part] = numbers(cursor);
  const [seenRevision, seenN, seenPart] = numbers(seen);
  // Changes of the conversation and what is told beside them are counted apart, and each goes forward alone.
  return n > seenN || revision > seenRevision || (revision === seenRevision && part > seenPart);
}

/** Numbers beside nodes may have more digits than a double keeps. */
function numbers(cursor: string): [bigint, bigint, bigint] {
  const [revision = "0", n = "0", part = "0"] = cursor.split(".");
  return [BigInt(revision), BigInt(n), BigInt(part)];
}
