const drafts = new Map<string, string>();

/** What a person began to write in a session, and has not sent. */
export function draftOf(...place: readonly [user: string, agent: string, session: string]): string {
  return drafts.get(JSON.stringify(place)) ?? "";
}

/** Keep it, for as long as the page is open. */
export function keepDraft(user: string, agent: string, session: string, text: string): void {
  drafts.set(JSON.stringify([user, agent, session]), text);
}
