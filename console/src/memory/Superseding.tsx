import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { call } from "../api/client.ts";
import type { Memory } from "../api/schema.ts";
import { ErrorState } from "../design/States.tsx";
import { toast } from "../design/toasts.ts";
import { Ending, Field } from "./Fields.tsx";
import styles from "./Fields.module.css";
import { route } from "./address.ts";
import { changed } from "./queries.ts";

/** Asks what is true in the place of a memory. */
export function Superseding({ memory: { id, content, version }, close }: { memory: Memory; close: () => void }) {
  const navigate = route.useNavigate();
  const [truth, setTruth] = useState("");
  const superseding = useMutation({
    mutationFn: () => call("POST /api/memories/{id}/supersede", { path: { id }, body: { content: truth, version } }),
    onSuccess: async (successor) => {
      toast("Memory superseded.", "good");
      close();
      await navigate({ params: { memory: successor.id }, search: (now) => now });
    },
    onSettled: changed,
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    superseding.mutate();
  };
  return (
    <form className={styles.form} onSubmit={submit}>
      <p>
        <del>{content}</del>
      </p>
      <Field label="New content">
        <textarea rows={4} required value={truth} onChange={({ target }) => setTruth(target.value)} />
      </Field>
      <p>The old memory stays in the history. Search returns it only for questions about that time.</p>
      {superseding.error && <ErrorState error={superseding.error} />}
      <Ending act="Supersede" busy={superseding.isPending} cancel={close} />
    </form>
  );
}
