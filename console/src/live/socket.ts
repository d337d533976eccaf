import { address } from "../api/client.ts";
import { PROTOCOL } from "./frames.ts";
import type { Socket } from "./line.ts";

/** A socket to an agent, in a session, which tells what happened after a cursor; without one, what happens from now. */
export function socketTo(agent: string, session: string, since: string | null): Socket {
  const path = address("/ws/{agent}", { agent }, { session_id: session, since });
  return new WebSocket(new URL(path, location.origin.replace(/^http/, "ws")), PROTOCOL) as Socket;
}
