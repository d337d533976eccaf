import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";
import { Problem } from "../api/problem.ts";
import { pause } from "./backoff.ts";
import { type Frame, PING } from "./frames.ts";
import { type Line, type LineState, type Socket, openLine } from "./line.ts";

class FakeSocket implements Socket {
  readyState = 0;
  onopen: Socket["onopen"] = null;
  onmessage: Socket["onmessage"] = null;
  onclose: Socket["onclose"] = null;
  sent: string[] = [];
  isClosed = false;

  send(text: string): void {
    this.sent.push(text);
  }

  close(): void {
    this.isClosed = true;
  }

  open(): void {
    this.readyState = 1;
    this.onopen?.();
    this.tell({ kind: "ready" });
  }

  tell(frame: object): void {
    this.onmessage?.({ data: JSON.stringify(frame) });
  }

  break(code = 1006, reason = ""): void {
    this.onclose?.({ code, reason });
  }
}

let sockets: FakeSocket[];
let states: LineState[];
let heard: Frame[];
let choked: number;
let why: Problem | null;
let line: Line;

beforeEach(() => {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
  [sockets, states, heard, choked, why] = [[], [], [], 0, null];
  line = openLine({
    dial: () => {
      sockets.push(new FakeSocket());
      return sockets.at(-1)!;
    },
    hear: (frame) => heard.push(frame),
    changed: (state) => states.push(state),
    choked: () => {
      choked += 1;
    },
    diagnose: () => Promise.resolve(why),
    chance: () => 1,
  });
});

const kinds = (): string[] => states.map(({ kind }) => kind);

test("a line is open when the server greets, and speaks only then", () => {
  assert.equal(line.say("early"), false);
  sockets[0]!.open();

  assert.equal(line.say("hello"), true);
  assert.deepEqual(sockets[0]!.sent, ["hello"]);
  assert.deepEqual(kinds(), ["connecting", "open"]);
});

test("a line that breaks is opened again, and an old socket is not heard any more", () => {
  sockets[0]!.open();
  sockets[0]!.break();
  mock.timers.tick(pause(0, 1));
  sockets[0]!.tell({ kind: "token", cursor: "1.1", text: "late" });
  sockets[0]!.break();
  sockets[1]!.open();

  assert.deepEqual(kinds(), ["connecting", "open", "waiting", "connecting", "open"]);
  assert.deepEqual(
    heard.map(({ kind }) => kind),
    ["ready", "ready"],
  );
});

test("pauses grow from try to try, never beyond a quarter of a minute, and differ between clients", () => {
  const longest = Array.from({ length: 12 }, (_, tries) => pause(tries, 1));

  assert.deepEqual(longest.slice(0, 4), [100, 200, 400, 800]);
  assert.equal(longest.at(-1), 15_000);
  assert.equal(pause(3, 0), 400);
});

test("a server that has enough to do is left alone for a while", () => {
  sockets[0]!.open();
  sockets[0]!.break(1013);
  mock.timers.tick(pause(5, 1) - 1);
  assert.equal(sockets.length, 1);
  mock.timers.tick(1);

  assert.equal(sockets.length, 2);
});

test("a line that the server ends for a reason is not opened again until somebody asks for it", () => {
  sockets[0]!.open();
  sockets[0]!.break(1008, "the key is not valid any more");
  mock.timers.tick(60_000);

  const last = states.at(-1)!;
  assert.equal(last.kind === "ended" && last.problem.what, "the key is not valid any more");
  assert.equal(sockets.length, 1);
  line.redial();
  assert.equal(sockets.length, 2);
});

test("a socket that does not open is asked about, and not tried again where that would not help", async () => {
  why = new Problem(404, "not_found", "there is no session");
  sockets[0]!.break();
  await Promise.resolve();
  mock.timers.tick(60_000);

  const last = states.at(-1)!;
  assert.equal(last.kind === "ended" && last.problem, why);
  assert.equal(sockets.length, 1);
});

test("a socket that does not open for no known reason is tried again", async () => {
  sockets[0]!.break();
  await Promise.resolve();
  mock.timers.tick(pause(0, 1));

  assert.equal(sockets.length, 2);
});

test("a frame that was too large is said to be, before the line is opened again", () => {
  sockets[0]!.open();
  sockets[0]!.break(1009);
  mock.timers.tick(pause(0, 1));

  assert.equal(choked, 1);
  assert.equal(sockets.length, 2);
});

test("a silent server is asked whether it is there, and given up when it does not say so", () => {
  sockets[0]!.open();
  mock.timers.tick(20_000);
  assert.deepEqual(sockets[0]!.sent, [PING]);
  sockets[0]!.tell({ kind: "pong" });
  mock.timers.tick(19_999);
  assert.equal(states.at(-1)!.kind, "open");
  mock.timers.tick(1);
  mock.timers.tick(10_000);

  assert.equal(states.at(-1)!.kind, "waiting");
  assert.ok(sockets[0]!.isClosed);
});

test("a socket that is left before it opened is closed when it does", () => {
  line.close();
  assert.equal(sockets[0]!.isClosed, false);
  sockets[0]!.open();

  assert.ok(sockets[0]!.isClosed);
  assert.deepEqual(heard, []);
});

test("what is no frame is passed by", () => {
  sockets[0]!.open();
  for (const data of ["", "null", "[]", "{", '{"kind": 1}', new Uint8Array(2)]) {
    sockets[0]!.onmessage?.({ data });
  }

  assert.equal(heard.length, 1);
});
