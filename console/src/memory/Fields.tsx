import { type ReactNode, useId } from "react";
import type { Memory } from "../api/schema.ts";
import { Button } from "../design/Button.tsx";
import styles from "./Fields.module.css";

/** What a person writes of a memory. */
export type Written = Pick<Memory, "content" | "type" | "importance">;

const USUAL_TYPES = ["fact", "preference", "summary", "decision", "event"];

/** The fields of what a person writes of a memory. */
export function Fields({ written, write }: { written: Written; write: (next: Written) => void }) {
  const id = useId();
  return (
    <>
      <Field label="Content">
        <textarea
          rows={4}
          required
          value={written.content}
          onChange={({ target }) => write({ ...written, content: target.value })}
        />
      </Field>
      <div className={styles.pair}>
        <Field label="Type">
          <input
            required
            list={id}
            value={written.type}
            onChange={({ target }) => write({ ...written, type: target.value })}
          />
          <datalist id={id}>
            {USUAL_TYPES.map((type) => (
              <option key={type} value={type} />
            ))}
          </datalist>
        </Field>
        <Field label="Importance (0 to 1)">
          <input
            type="number"
            required
            min={0}
            max={1}
            step="any"
            value={Number.isNaN(written.importance) ? "" : written.importance}
            onChange={({ target }) => write({ ...written, importance: target.valueAsNumber })}
          />
        </Field>
      </div>
    </>
  );
}

/** A field with its name above it. */
export function Field({ label, children }: { label: string; children: ReactNode }) {
  return (
    <label className={styles.field}>
      <span>{label}</span>
      {children}
    </label>
  );
}

/** What ends a form: doing what it says, or not. */
export function Ending({ act, busy, cancel }: { act: string; busy: boolean; cancel: () => void }) {
  return (
    <div className={styles.ending}>
      <Button onClick={cancel}>Cancel</Button>
      <Button kind="primary" type="submit" disabled={busy}>
        {act}
      </Button>
    </div>
  );
}
