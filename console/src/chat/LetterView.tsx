import { Button } from "../design/Button.tsx";
import { ErrorState } from "../design/States.tsx";
import type { Letter } from "../live/outbox.ts";
import { Spoken } from "./Spoken.tsx";
import styles from "./Turn.module.css";

/** A message that is on its way, or was refused. */
export function LetterView({ letter, takeBack }: { letter: Letter; takeBack: (letter: Letter) => void }) {
  return (
    <article className={styles.turn} aria-label="Unsent message">
      <div className={styles.message}>
        <h3 className={styles.author}>{letter.problem ? "not sent" : "sending …"}</h3>
        <Spoken text={letter.text} />
      </div>
      {letter.problem && (
        <>
          <ErrorState error={letter.problem} />
          <Button onClick={() => takeBack(letter)}>Edit and resend</Button>
        </>
      )}
    </article>
  );
}
