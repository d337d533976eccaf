import { useMutation } from "@tanstack/react-query";
import { useEffect, useId, useRef, useState } from "react";
import { call } from "../api/client.ts";
import { stale } from "../api/queries.ts";
import type { Connection } from "../api/schema.ts";
import { Button } from "../design/Button.tsx";
import { Dialog } from "../design/Dialog.tsx";
import { ErrorState } from "../design/States.tsx";
import { Tag, type Tone } from "../design/Tag.tsx";
import { Time } from "../design/Time.tsx";
import { sentence } from "../design/sentence.ts";
import { complain, toast } from "../design/toasts.ts";
import styles from "./Connections.module.css";

const STATES: Record<Connection["state"], { tone: Tone; word: string }> = {
  connected: { tone: "good", word: "connected" },
  expired: { tone: "warn", word: "connect again" },
  not_connected: { tone: "plain", word: "not connected" },
};

interface Props {
  connection: Connection;
  /** Whether the address names it: somebody was sent here for it. */
  isWanted: boolean;
}

/** One back end: who gets the calls, whether the user has agreed, and what can be done. */
export function ConnectionView({ connection, isWanted }: Props) {
  const { source, host, state, reason, issuer, scopes, connected_at: at } = connection;
  const id = useId();
  const item = useRef<HTMLLIElement>(null);
  const [asks, setAsks] = useState(false);
  const connecting = useMutation({
    mutationFn: () => call("POST /api/connections/{source}", { path: { source } }),
    onSuccess: ({ url }) => location.assign(url),
    onError: complain,
  });
  useEffect(() => {
    if (isWanted) {
      item.current?.scrollIntoView({ block: "nearest" });
    }
  }, [isWanted]);
  const isConnected = state === "connected";
  return (
    <li ref={item} className={styles.item} aria-current={isWanted || undefined} aria-labelledby={id}>
      <h2 id={id}>{source}</h2>
      <Tag tone={STATES[state].tone}>{STATES[state].word}</Tag>
      <p className={styles.facts}>
        {host && <span>Calls go to {host}.</span>}
        {issuer && <span>Account at {issuer}.</span>}
        {scopes && scopes.length > 0 && <span>It may: {scopes.join(", ")}.</span>}
        {at && (
          <span>
            Connected <Time at={at} />.
          </span>
        )}
        {reason && <span>{sentence(reason)}</span>}
      </p>
      <div className={styles.actions} role="group" aria-label={`Actions for ${source}`}>
        <Button
          kind={isConnected ? "plain" : "primary"}
          disabled={connecting.isPending}
          onClick={() => connecting.mutate()}
        >
          {state === "not_connected" ? "Connect" : "Connect again"}
        </Button>
        {state !== "not_connected" && (
          <Button kind="danger" onClick={() => setAsks(true)}>
            Disconnect
          </Button>
        )}
      </div>
      <Dialog title={`Disconnect from ${source}?`} open={asks} close={() => setAsks(false)}>
        <Disconnecting source={source} close={() => setAsks(false)} />
      </Dialog>
    </li>
  );
}

/** Asks whether a connection is to be removed, and does it. */
function Disconnecting({ source, close }: { source: string; close: () => void }) {
  const removing = useMutation({
    mutationFn: () => call("DELETE /api/connections/{source}", { path: { source } }),
    onSuccess: async ({ revoked }) => {
      toast(revoked ? `Disconnected from ${source}.` : `Disconnected from ${source}. Its server was not told.`, "good");
      close();
      await stale("GET /api/connections");
    },
  });
  return (
    <>
      <p>Its tools can no longer use your account. The tokens are deleted, and revoked where the server offers that.</p>
      {removing.error && <ErrorState error={removing.error} />}
      <div className={styles.ending}>
        <Button onClick={close}>Cancel</Button>
        <Button kind="danger" disabled={removing.isPending} onClick={() => removing.mutate()}>
          Disconnect
        </Button>
      </div>
    </>
  );
}
