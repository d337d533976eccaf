import { talkative } from "../api/agents.ts";
import { call } from "../api/client.ts";
import { Problem } from "../api/problem.ts";
import type { Conversation } from "../api/schema.ts";
import type { Refused } from "./frames.ts";

/** Why a session cannot be talked in. */
export interface Diagnosis {
  readonly problem: Problem;
  /** Its conversation, where it can be read all the same. */
  readonly conversation?: string;
  /** The agent that it is with, where that is another. */
  readonly agent?: string;
}

/** Why a socket was refused, which a browser is not told: what the API says of the same names; null: it may pass. */
export async function diagnose(user: string, agent: string, session: string): Promise<Diagnosis | null> {
  try {
    const [{ agents }, { scopes }] = await Promise.all([call("GET /api/agents", {}), call("GET /api/me", {})]);
    if (!talkative(agents).some(({ name }) => name === agent)) {
      return {
        problem: new Problem(404, "not_found", `there is no agent ${agent}`, "", "Choose another agent above."),
      };
    }
    const found = await find(session);
    if (found && found.agent !== null && found.agent !== agent) {
      return { problem: new Problem(422, "invalid_input", `this session is with ${found.agent}`), agent: found.agent };
    }
    if (found && found.user !== user) {
      return { problem: anothers(found.id) };
    }
    if (!scopes.includes("write")) {
      return found ? { problem: readOnly(), conversation: found.id } : { problem: readOnly() };
    }
    return null;
  } catch (error) {
    const problem = Problem.from(error);
    return problem.isPassing || problem.status >= 500 ? null : { problem };
  }
}

/** The conversation of a session; null: there is none yet, and the socket that opens makes it. */
async function find(session: string): Promise<Conversation | null> {
  try {
    return await call("GET /api/conversations/by-session", { query: { session_id: session } });
  } catch (error) {
    if (Problem.from(error).status === 404) {
      return null;
    }
    throw error;
  }
}

/** Why a message was not taken; what to do is told once, though the message ends with it. */
export function refusal({ code, message, next = "" }: Refused): Problem {
  const what = message.endsWith(next) ? message.slice(0, message.length - next.length).trimEnd() : message;
  return new Problem(0, code, what, "", next);
}

export function tooLarge(): Problem {
  return new Problem(
    0,
    "too_large",
    "the message is too large",
    "",
    "Split it into several messages, or store it where a tool can read it.",
  );
}

function readOnly(): Problem {
  const next = "Ask for a link with this scope: `holdfast keys link --scope read --scope write`.";
  return new Problem(403, "forbidden", "you have read-only access", "your access does not have the scope write", next);
}

function anothers(conversation: string): Problem {
  const next = `Read it in Sessions: ${conversation}. To talk to the agent yourself, start a new session.`;
  return new Problem(403, "forbidden", "this session belongs to another user", "only its user can send messages", next);
}
