import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { beforeEach, test } from "node:test";
import { cli, curl, python, pythonText, shell, speakFor } from "./commands.ts";

const HARMLESS = ["plain", "a-b_c.d/e:f", "50%", "ann@home"];
const HOSTILE = [
  "",
  "two words",
  "it's",
  "''",
  '"quoted"',
  "$HOME `id` $(id) ${x}",
  "a\\b\\",
  "first\nsecond\n",
  "; rm -rf / #",
  "!! !x",
  "~",
  "=ls",
  "*?[a]{b,c}",
  "-n",
  "größer 日本語 👩‍💻 e\u0301",
];
const UNSEEN = ["\x03\nid\n", "tab\there", "\x1b[2J", "\x7f7", "right\u202eto left", "it's\x07!'\\", "\u009b1"];

beforeEach(() => speakFor({ origin: "http://127.0.0.1:4600", local: true, tenant: "default" }));

test("a shell gives back every word as it was", () => {
  for (const word of [...HARMLESS, ...HOSTILE]) {
    assert.equal(said("sh", word), word);
  }
});

test("a shell that knows dollar quotes gives back control characters, which are never pasted as such", () => {
  for (const word of [...HARMLESS, ...HOSTILE, ...UNSEEN]) {
    assert.equal(said("bash", word), word);
    assert.doesNotMatch(shell(word), /[\0-\x09\x0b-\x1f\x7f-\x9f\u202e]/);
  }
});

test("plain words are not quoted", () => {
  assert.equal(shell(...HARMLESS), HARMLESS.join(" "));
});

test("a command of the engine names any tenant but the ordinary one", () => {
  assert.equal(cli("memory", "search", "green tea"), "holdfast memory search 'green tea'");

  speakFor({ origin: "", local: true, tenant: "o'brien" });

  assert.equal(cli("doctor"), "holdfast --tenant 'o'\\''brien' doctor");
});

test("a request says only what differs from curl's own ways", () => {
  assert.equal(curl("GET", "/api/me"), "curl -sS http://127.0.0.1:4600/api/me");
  assert.equal(curl("DELETE", "/x?a=1&b=2"), "curl -sS -X DELETE 'http://127.0.0.1:4600/x?a=1&b=2'");
  assert.match(curl("POST", "/x", {}), /^curl -sS \S+ \\\n  -H 'Content-Type: application\/json' \\\n  -d '{}'$/);
});

test("a request names the key where one is needed, and never writes it out", () => {
  speakFor({ origin: "https://engine.example", local: false, tenant: "default" });

  assert.ok(curl("GET", "/api/me").endsWith('-H "Authorization: Bearer $HOLDFAST_KEY"'));
});

test("a request's body arrives as it was", () => {
  const body = { text: [...HOSTILE, ...UNSEEN].join("|"), none: null, list: [1, true] };
  const words = curl("POST", "/x", body).replace("curl", "printf '%s\\0'");

  const heard = execFileSync("sh", ["-c", words], { encoding: "utf8" }).split("\0");

  assert.deepEqual(JSON.parse(heard[heard.indexOf("-d") + 1]!), body);
});

test("Python reads every value as it was", () => {
  const value = {
    "it's": [...HOSTILE, ...UNSEEN, "\0", "\ud800"],
    numbers: [0, -1, 1.5, 1e21, 1e-7],
    nothing: null,
    either: [true, false],
    nested: [{ a: [] }, {}],
  };
  const program = `import json; print(json.dumps(${pythonText(value)}))`;

  const heard = execFileSync("python3", ["-c", program], { encoding: "utf8" });

  assert.deepEqual(JSON.parse(heard), value);
});

test("a program of Python opens the engine for the tenant that is shown", () => {
  speakFor({ origin: "", local: true, tenant: "acme" });

  const program = python("print(await engine.parts())");

  assert.ok(program.includes('open_engine(tenant="acme") as engine:\n        print(await engine.parts())\n'));
  execFileSync("python3", ["-c", "import ast, sys; ast.parse(sys.argv[1])", program]);
});

function said(name: string, word: string): string {
  return execFileSync(name, ["-c", `printf '%s' ${shell(word)}`], {
    encoding: "utf8",
    env: { ...process.env, LC_ALL: "C.UTF-8" },
    stdio: ["ignore", "pipe", "inherit"], // a socket there would have bash read its start-up file
  });
}
