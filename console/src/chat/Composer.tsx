import { type KeyboardEvent, type Ref, useId } from "react";
import { Button } from "../design/Button.tsx";
import styles from "./Composer.module.css";

const LONG = 5_000; // characters, from which on a field that grows with them is slow

interface Props {
  agent: string;
  text: string;
  write: (text: string) => void;
  send: () => void;
  stop: (() => void) | null;
  field: Ref<HTMLTextAreaElement>;
  disabled: boolean;
}

/** Where a message is written: Enter sends it, with Shift it begins a line. */
export function Composer({ agent, text, write, send, stop, field, disabled }: Props) {
  const id = useId();
  const hint = useId();
  const press = (event: KeyboardEvent): void => {
    // Enter may end the writing of a character, as in Japanese.
    if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
      event.preventDefault();
      send();
    }
  };
  return (
    <form
      className={styles.composer}
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <label htmlFor={id} className="hidden-label">
        Message to {agent}
      </label>
      <textarea
        id={id}
        ref={field}
        data-search=""
        className={styles.field}
        data-long={text.length > LONG}
        rows={2}
        disabled={disabled}
        value={text}
        placeholder={`Message to ${agent}`}
        aria-describedby={hint}
        onChange={(event) => write(event.target.value)}
        onKeyDown={press}
      />
      <div className={styles.buttons}>
        {stop && (
          <Button kind="danger" onClick={stop}>
            Stop
          </Button>
        )}
        {(!stop || text.trim() !== "") && (
          <Button kind="primary" type="submit" disabled={text.trim() === ""}>
            Send
          </Button>
        )}
      </div>
      <p id={hint} className={styles.hint}>
        <kbd>Enter</kbd> to send, <kbd>Shift</kbd> <kbd>Enter</kbd> for a new line, <kbd>/</kbd> to focus.
      </p>
    </form>
  );
}
