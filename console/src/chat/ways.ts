import { address } from "../api/client.ts";
import type { Ways } from "../design/CopyAs.tsx";
import { cli, curl, python, pythonText } from "../design/commands.ts";

interface Shown {
  readonly agent: string;
  readonly session: string;
  readonly user: string;
  readonly conversation: string | null;
  /** What is written and not sent yet. */
  readonly draft: string;
}

/** What the chat shows, as commands: the message that is written is said, where there is one; else all is read. */
export function waysOf({ agent, session, user, conversation, draft }: Shown): Ways {
  const text = pythonText;
  if (draft.trim() !== "") {
    const body = { message: draft, session_id: session, agent_id: agent };
    return {
      cli: cli("chat", "--session", session, "--user", user, "--", agent, draft),
      curl: curl("POST", address("/api/chat"), body),
      python: python(
        "async for event in engine.agents.run(",
        `    ${text(agent)}, message=${text(draft)}, user=${text(user)}, session_id=${text(session)}`,
        "):",
        "    print(event.kind, event.text)",
      ),
    };
  }
  const events = address("/api/conversations/{id}/events", { id: conversation ?? "" });
  return {
    cli: cli("sessions", "show", session),
    curl: curl("GET", events),
    python: python(
      `conversation = await engine.conversations.find(session_id=${text(session)})`,
      "for node in await engine.conversations.last(conversation.id, 50):",
      "    print(node.seq, node.context, node.content)",
    ),
  };
}
