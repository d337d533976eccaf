import { address } from "../api/client.ts";
import type { Ways } from "../design/CopyAs.tsx";
import { cli, curl, python, pythonText } from "../design/commands.ts";
import type { Holder } from "./holders.ts";

interface Shown {
  readonly holder: Holder;
  readonly memory?: string | undefined;
  readonly question?: string | undefined;
  readonly alsoPast: boolean;
}

const FLAGS = { user: "--user", agent: "--agent", session: "--session" } as const;

/** What the screen shows, said to the command line, curl and Python. */
export function waysOf({ holder, memory, question, alsoPast }: Shown): Ways {
  if (memory !== undefined) {
    return question === undefined ? ofMemory(memory) : ofAbsence(memory, holder, question);
  }
  return question === undefined ? ofList(holder, alsoPast) : ofSearch(holder, question);
}

function ofList(holder: Holder, alsoPast: boolean): Ways {
  const query = { ...holder, also_past: alsoPast || undefined };
  return {
    cli: cli("memory", "export", whose(holder)),
    curl: curl("GET", address("/api/memories", {}, query)),
    python: python(
      `for memory in await engine.memory.list(${owner(holder)}${alsoPast ? ", also_past=True" : ""}):`,
      "    print(memory.id, memory.created_at, memory.content)",
    ),
  };
}

function ofSearch(holder: Holder, question: string): Ways {
  return {
    cli: cli("memory", "explain", whose(holder), "--", question),
    curl: curl("POST", address("/api/memories/search"), { owner: holder, query: question, explain: true }),
    python: python(
      `for hit in await engine.memory.search(${owner(holder)}, ${pythonText(question)}, explain=True):`,
      "    print(hit.score, hit.memory.content, hit.parts)",
    ),
  };
}

function ofMemory(id: string): Ways {
  return {
    cli: cli("memory", "history", "--", id),
    curl: curl("GET", address("/api/memories/{id}", { id })),
    python: python("from uuid import UUID", "", `print(await engine.memory.get(${uuid(id)}))`),
  };
}

function ofAbsence(id: string, holder: Holder, question: string): Ways {
  return {
    cli: cli("memory", "why-not", whose(holder), "--", id, question),
    curl: curl("POST", address("/api/memories/why-not"), { id, owner: holder, query: question }),
    python: python(
      "from uuid import UUID",
      "",
      `print(await engine.memory.why_not(${uuid(id)}, ${owner(holder)}, ${pythonText(question)}))`,
    ),
  };
}

function whose({ scope, name }: Holder): string {
  return scope === "organization" ? "--org" : `${FLAGS[scope]}=${name}`;
}

function owner({ scope, name }: Holder): string {
  return `holdfast.${scope}(${name === null ? "" : pythonText(name)})`;
}

function uuid(id: string): string {
  return `UUID(${pythonText(id)})`;
}
