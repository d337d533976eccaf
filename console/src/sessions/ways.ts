import { address } from "../api/client.ts";
import type { Conversation } from "../api/schema.ts";
import type { Ways } from "../design/CopyAs.tsx";
import { cli, curl, python, pythonText } from "../design/commands.ts";

interface Shown {
  readonly q?: string | undefined;
  readonly agent?: string | undefined;
  readonly user?: string | undefined;
  readonly at?: number | undefined;
  readonly run?: string | undefined;
}

/** What the screen shows, said to the command line, curl and Python. */
export function waysOf(talk: Conversation | undefined, shown: Shown): Ways {
  if (shown.run !== undefined) {
    return ofRun(shown.run);
  }
  if (talk !== undefined) {
    return shown.at === undefined ? ofConversation(talk) : ofEvent(talk, shown.at);
  }
  return shown.q === undefined ? ofList(shown) : ofSearch(shown.q, shown);
}

function ofList({ agent, user }: Shown): Ways {
  return {
    cli: cli("sessions", "ls", "--spoken", ...options({ agent, user })),
    curl: curl("GET", address("/api/conversations", {}, { agent, user, spoken: true, openings: true })),
    python: python(
      `for conversation in await engine.conversations.list(${["spoken=True", keywords({ agent, user })].filter(Boolean).join(", ")}):`,
      "    print(conversation.session_id, conversation.agent, conversation.user, conversation.last_seq)",
    ),
  };
}

function ofSearch(text: string, { agent, user }: Shown): Ways {
  return {
    cli: cli("sessions", "search", ...options({ agent, user }), "--", text),
    curl: curl("GET", address("/api/conversations/search", {}, { text, agent, user })),
    python: python(
      `for found in await engine.conversations.search(${[pythonText(text), keywords({ agent, user })].filter(Boolean).join(", ")}):`,
      "    print(found.conversation.session_id, found.node.seq, found.node.content)",
    ),
  };
}

function ofConversation(talk: Conversation): Ways {
  return {
    cli: cli("sessions", "show", "--", talk.session_id ?? talk.id),
    curl: curl("GET", address("/api/conversations/{id}/nodes", talk, { since: 0, limit: 1000 })),
    python: python(
      ...imported,
      `for node in await engine.conversations.since(${uuid(talk.id)}, 0):`,
      "    print(node.seq, node.author, node.content)",
    ),
  };
}

function ofEvent(talk: Conversation, at: number): Ways {
  const before = Math.max(0, at - 1);
  return {
    cli: ofConversation(talk).cli,
    curl: curl("GET", address("/api/conversations/{id}/nodes", talk, { since: before, limit: 1 })),
    python: python(
      ...imported,
      `async for step in engine.conversations.replay(${uuid(talk.id)}, until=${at}):`,
      "    pass",
      "print(step.node.author, step.node.content, step.state)",
    ),
  };
}

function ofRun(id: string): Ways {
  return {
    cli: cli("runs", "show", "--", id),
    curl: curl("GET", address("/api/runs/{id}", { id })),
    python: python(
      ...imported,
      `past = await engine.agents.past(${uuid(id)})`,
      "for step in past.steps:",
      "    print(step.number, step.sent, step.reply)",
    ),
  };
}

const imported = ["from uuid import UUID", ""];

function uuid(id: string): string {
  return `UUID(${pythonText(id)})`;
}

function options(given: Record<string, string | undefined>): string[] {
  return Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`]));
}

function keywords(given: Record<string, string | undefined>): string {
  const said = Object.entries(given).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${pythonText(value)}`],
  );
  return said.join(", ");
}
