import { generateNewSessionId, initializeSessionAsync } from "chat-session";
import { queryOptions } from "@tanstack/react-query";
import { call, fetched } from "../api/client.ts";
import { Problem } from "../api/problem.ts";
import { queries } from "../api/queries.ts";
import { root } from "../api/root.ts";

/** The session that a person is in with an agent: this browser's, else the one of another device, else a new one. */
export function activeSession(user: string, agent: string) {
  return queryOptions({
    queryKey: ["active session", user, agent] as const,
    queryFn: () =>
      initializeSessionAsync({ userId: user, agentName: agent, baseUrl: root, fetch: fetched }).catch(
        (error: Error) => {
          throw error.cause instanceof Problem ? error.cause : error;
        },
      ),
  });
}

/** Have the person be in this session from now on, on all of their devices. */
export async function enterSession(user: string, agent: string, session: string): Promise<string> {
  await call("PUT /api/sessions/active", { query: { agent_id: agent }, body: { session_id: session } });
  await queries.refetchQueries({ queryKey: activeSession(user, agent).queryKey });
  return session;
}

/** A new session, in which the person is from now on. */
export function beginSession(user: string, agent: string): Promise<string> {
  return enterSession(user, agent, generateNewSessionId());
}
