import { UNSEEN, hex, json } from "./json.ts";

/** Who the commands on a screen are for: where the server is, whether it wants a key, and whose rows are meant. */
export interface Speaker {
  readonly origin: string;
  readonly local: boolean;
  readonly tenant: string;
}

const ORDINARY_TENANT = "default";
const PLAIN = /^[\w@%+:,./-][\w@%+=:,./-]*$/;
// Pasted into a terminal, what is unseen would be pressed keys, or would hide what stands there.
const UNSEEN_OR_SPECIAL = new RegExp(`${UNSEEN.source}|[\\\\'!\\n]`, "g");

let speaker: Speaker = { origin: "", local: false, tenant: ORDINARY_TENANT };

/** Have the commands from here on be for this one. */
export function speakFor(next: Speaker): void {
  speaker = next;
}

/** Words as a POSIX shell takes them; those with control characters as `$'…'`, which bash, ksh and zsh know. */
export function shell(...words: string[]): string {
  return words.map(quoted).join(" ");
}

/** A command of `holdfast`, for the tenant that is shown. */
export function cli(...words: string[]): string {
  return shell("holdfast", ...(speaker.tenant === ORDINARY_TENANT ? [] : ["--tenant", speaker.tenant]), ...words);
}

/** A request of the API; `path` as `address` gives it: with the root path, its parameters encoded. */
export function curl(method: string, path: string, body?: unknown): string {
  const usual = body === undefined ? "GET" : "POST";
  const parts = [shell("curl", "-sS", ...(method === usual ? [] : ["-X", method]), speaker.origin + path)];
  if (!speaker.local) {
    parts.push('-H "Authorization: Bearer $HOLDFAST_KEY"');
  }
  if (body !== undefined) {
    parts.push("-H 'Content-Type: application/json'", `-d ${quoted(json(body))}`);
  }
  return parts.join(" \\\n  ");
}

/** A whole program whose lines have an `engine`: `python("print(await engine.parts())")`. */
export function python(...lines: string[]): string {
  const given = speaker.tenant === ORDINARY_TENANT ? "" : `tenant=${pythonText(speaker.tenant)}`;
  return [
    "import asyncio",
    "",
    "import holdfast",
    "",
    "",
    "async def main() -> None:",
    `    async with holdfast.open_engine(${given}) as engine:`,
    ...lines.map((line) => line && `        ${line}`),
    "",
    "",
    "asyncio.run(main())",
  ].join("\n");
}

/** A value of JSON as Python writes it, on one line. */
export function pythonText(value: unknown): string {
  if (value === null || value === undefined) {
    return "None";
  }
  if (typeof value === "boolean") {
    return value ? "True" : "False";
  }
  if (Array.isArray(value)) {
    return `[${value.map(pythonText).join(", ")}]`;
  }
  if (typeof value === "object") {
    const entries = Object.entries(value).filter(([, each]) => each !== undefined);
    return `{${entries.map(([key, each]) => `${json(key)}: ${pythonText(each)}`).join(", ")}}`;
  }
  return json(value); // strings and numbers are written alike in both
}

function quoted(word: string): string {
  if (UNSEEN.test(word)) {
    return `$'${word.replace(UNSEEN_OR_SPECIAL, escaped)}'`;
  }
  return PLAIN.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** Octal has a fixed length: no digit after it is taken for a part of it. */
function escaped(character: string): string {
  const code = character.charCodeAt(0);
  return code < 0x80 ? `\\${code.toString(8).padStart(3, "0")}` : `\\u${hex(code)}`;
}
