import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { call } from "../api/client.ts";
import type { AgentRun } from "../api/schema.ts";
import { Button } from "../design/Button.tsx";
import { Dialog } from "../design/Dialog.tsx";
import { ErrorState } from "../design/States.tsx";
import type { Said } from "../live/turns.ts";
import styles from "./Turn.module.css";

interface Props {
  run: string;
  /** Null: it was deleted, or is earlier than what was read. */
  message: Said | null;
  retried: (run: AgentRun) => void;
}

/** What can be done about a message that got no answer: ask again, ask something else, or delete it. */
export function Unanswered({ run, message, retried }: Props) {
  const [isEditing, setIsEditing] = useState(false);
  const retry = useMutation({ mutationFn: () => retryRun(run), onSuccess: retried });
  const remove = useMutation({
    mutationFn: async (id: string) => {
      const { version } = await call("GET /api/nodes/{id}", { path: { id } });
      return call("DELETE /api/nodes/{id}", { path: { id }, query: { version } });
    },
  });
  const isBusy = retry.isPending || remove.isPending;
  const error = retry.error ?? remove.error;
  return (
    <>
      <Button disabled={isBusy} onClick={() => retry.mutate()}>
        Try again
      </Button>
      {message && (
        <>
          <Button kind="quiet" disabled={isBusy} onClick={() => setIsEditing(true)}>
            Edit
          </Button>
          <Button kind="quiet" disabled={isBusy} onClick={() => remove.mutate(message.id)}>
            Delete
          </Button>
          <Dialog title="Edit message" open={isEditing} close={() => setIsEditing(false)}>
            <Editing {...{ run, message, retried }} close={() => setIsEditing(false)} />
          </Dialog>
        </>
      )}
      {error && <ErrorState error={error} />}
    </>
  );
}

function Editing({ run, message, retried, close }: Props & { message: Said; close: () => void }) {
  const [text, setText] = useState(message.text);
  const send = useMutation({
    mutationFn: async () => {
      const path = { id: message.id };
      const { version } = await call("GET /api/nodes/{id}", { path });
      await call("PATCH /api/nodes/{id}", { path, body: { content: text, version } });
      return retryRun(run);
    },
    onSuccess: (again) => {
      retried(again);
      close();
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    send.mutate();
  };
  return (
    <form className={styles.editing} onSubmit={submit}>
      <textarea aria-label="Message" rows={5} value={text} onChange={({ target }) => setText(target.value)} />
      {send.error && <ErrorState error={send.error} />}
      <div className={styles.meta}>
        <Button kind="primary" type="submit" disabled={send.isPending || text.trim() === ""}>
          Send again
        </Button>
        <Button onClick={close}>Cancel</Button>
      </div>
    </form>
  );
}

function retryRun(id: string): Promise<AgentRun> {
  return call("POST /api/runs/{id}/retry", { path: { id } });
}
