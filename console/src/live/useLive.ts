import { useSyncExternalStore } from "react";
import { type Conversation, type Live, conversation } from "./live.ts";

/** A conversation as it is right now, and what can be done in it. */
export function useLive(user: string, agent: string, session: string): [Live, Conversation] {
  const talk = conversation(user, agent, session);
  return [useSyncExternalStore(talk.subscribe, talk.now), talk];
}
