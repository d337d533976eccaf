import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { call } from "../api/client.ts";
import { Problem } from "../api/problem.ts";
import type { Memory } from "../api/schema.ts";
import { Button } from "../design/Button.tsx";
import { ErrorState } from "../design/States.tsx";
import { toast } from "../design/toasts.ts";
import styles from "./Editing.module.css";
import { Ending, Fields, type Written } from "./Fields.tsx";
import fields from "./Fields.module.css";
import { changed } from "./queries.ts";

/** Asks what a memory should say; what somebody else made of it meanwhile is told, and never written over unseen. */
export function Editing({ memory, close }: { memory: Memory; close: () => void }) {
  const [base, setBase] = useState(memory);
  const [written, setWritten] = useState<Written>(writtenOf(memory));
  const [isOvertaken, setIsOvertaken] = useState(false);
  const path = { id: memory.id };
  const saving = useMutation({
    mutationFn: (body: Partial<Written>) =>
      call("PATCH /api/memories/{id}", { path, body: { ...body, version: base.version } }),
    onSuccess: () => {
      toast("Memory saved.", "good");
      close();
    },
    onError: async (error) => {
      if (Problem.from(error).code === "conflict") {
        setBase(await call("GET /api/memories/{id}", { path }));
        setIsOvertaken(true);
      }
    },
    onSettled: changed,
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const edits = editsOf(base, written);
    if (Object.keys(edits).length === 0) {
      close();
    } else {
      saving.mutate(edits);
    }
  };
  return (
    <form className={fields.form} onSubmit={submit}>
      <Fields written={written} write={setWritten} />
      {isOvertaken && <Overtaken base={base} take={() => setWritten(writtenOf(base))} />}
      {saving.error && Problem.from(saving.error).code !== "conflict" && <ErrorState error={saving.error} />}
      <Ending act={isOvertaken ? "Overwrite" : "Save"} busy={saving.isPending} cancel={close} />
    </form>
  );
}

function Overtaken({ base, take }: { base: Memory; take: () => void }) {
  return (
    <div className={styles.overtaken} role="alert">
      <p>
        <strong>Someone else changed this memory.</strong> It is now at version {base.version}, with the type{" "}
        {base.type} and the importance {base.importance}:
      </p>
      <p className={styles.theirs}>{base.content}</p>
      <p>Overwrite it with your text, or continue from the current version.</p>
      <Button onClick={take}>Use current version</Button>
    </div>
  );
}

function writtenOf({ content, type, importance }: Memory): Written {
  return { content, type, importance };
}

function editsOf(base: Memory, written: Written): Partial<Written> {
  const edits = Object.entries(written).filter(([field, value]) => base[field as keyof Written] !== value);
  return Object.fromEntries(edits);
}
