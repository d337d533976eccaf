import { Problem } from "../api/problem.ts";
import { pause } from "./backoff.ts";
import { type Frame, PING, readFrame } from "./frames.ts";

const QUIET = 20_000; // milliseconds without a frame after which the server is asked whether it is there
const PATIENCE = 10_000; // and those that it has to answer
const POLICY_VIOLATION = 1008;
const TOO_LARGE = 1009;
const TRY_LATER = 1013;
const LATER = 5; // tries that a pause for a server that has enough to do is counted as
const CONNECTING = 0;

/** How the connection is. */
export type LineState =
  | { readonly kind: "connecting" }
  | { readonly kind: "open" }
  | { readonly kind: "waiting"; readonly tries: number }
  | { readonly kind: "ended"; readonly problem: Problem };

/** What of a browser's WebSocket is used. */
export interface Socket {
  readonly readyState: number;
  onopen: (() => void) | null;
  onmessage: ((event: { readonly data: unknown }) => void) | null;
  onclose: ((event: { readonly code: number; readonly reason: string }) => void) | null;
  send: (text: string) => void;
  close: () => void;
}

interface Ends {
  /** A new socket, from where the talk is now. */
  dial: () => Socket;
  hear: (frame: Frame) => void;
  /** That the line is open, or is not. */
  changed: (state: LineState) => void;
  /** That the server does not read what it was told: it is larger than a frame may be. */
  choked: () => void;
  /** Why a socket did not open, as far as a browser may not know; null: it is worth another try. */
  diagnose: () => Promise<Problem | null>;
  chance?: () => number;
}

export interface Line {
  /** Say something; false: the line is not open, and nothing was said. */
  say: (text: string) => boolean;
  /** Try now, whatever it waits for. */
  redial: () => void;
  close: () => void;
}

/** A line to the server that is opened again whenever it breaks. What an old socket says after that is not heard. */
export function openLine({ dial, hear, changed, choked, diagnose, chance = Math.random }: Ends): Line {
  let socket: Socket | null = null;
  let isOpen = false;
  let tries = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const after = (milliseconds: number, act: () => void): void => {
    clearTimeout(timer);
    timer = setTimeout(act, milliseconds);
  };
  const drop = (): void => {
    clearTimeout(timer);
    const old = socket;
    socket = null;
    isOpen = false;
    if (old?.readyState === CONNECTING) {
      old.onopen = () => old.close(); // browsers complain about one that is closed before
    } else {
      old?.close();
    }
  };
  const end = (problem: Problem): void => {
    drop();
    changed({ kind: "ended", problem });
  };
  const wait = (): void => {
    drop();
    changed({ kind: "waiting", tries });
    after(pause(tries, chance()), connect);
    tries += 1;
  };
  const listen = (): void => {
    after(QUIET, () => {
      socket?.send(PING);
      after(PATIENCE, wait);
    });
  };
  const connect = (): void => {
    drop();
    changed({ kind: "connecting" });
    const own = dial();
    socket = own;
    after(QUIET + PATIENCE, wait); // a server that takes a connection and says nothing
    own.onmessage = ({ data }) => {
      const frame = own === socket ? readFrame(data) : null;
      if (frame === null) {
        return;
      }
      listen();
      hear(frame);
      if (frame.kind === "ready" && own === socket) {
        isOpen = true;
        tries = 0;
        changed({ kind: "open" });
      }
    };
    own.onclose = ({ code, reason }) => {
      if (own !== socket) {
        return;
      }
      if (code === POLICY_VIOLATION) {
        end(new Problem(0, "refused", reason || "the server ended this conversation"));
        return;
      }
      if (code === TOO_LARGE) {
        choked();
      }
      tries = code === TRY_LATER ? Math.max(tries, LATER) : tries;
      const failed = !isOpen;
      wait();
      const waiting = timer;
      if (failed) {
        void diagnose().then((problem) => problem !== null && timer === waiting && end(problem));
      }
    };
  };

  connect();
  return {
    say: (text) => {
      if (!isOpen) {
        return false;
      }
      socket?.send(text);
      return true;
    },
    redial: () => {
      tries = 0;
      connect();
    },
    close: drop,
  };
}
