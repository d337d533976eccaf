import { type ReactNode, useState } from "react";
import { Button } from "../design/Button.tsx";
import { counted } from "../design/figures.ts";
import { json } from "../design/json.ts";
import styles from "./Value.module.css";
import { type Piece, marked } from "./marks.ts";

const SHOWN = 4000; // characters
const LINE = 30;

/** What somebody said, as it stands; the words that were searched for are marked. */
export function Text({ text, sought }: { text: string; sought?: string | undefined }) {
  return (
    <Shortened text={text}>
      {(shown) => (
        <p className={styles.text}>
          <Marked pieces={marked(shown, sought)} />
        </p>
      )}
    </Shortened>
  );
}

/** A value of JSON: a text as it stands, all else as JSON, on one line where it fits. */
export function Value({ value }: { value: unknown }) {
  const text = typeof value === "string" ? value : written(value);
  return <Shortened text={text}>{(shown) => <pre className={styles.value}>{shown}</pre>}</Shortened>;
}

export function Marked({ pieces }: { pieces: readonly Piece[] }) {
  return pieces.map(({ text, marked }, index) =>
    marked ? (
      <mark key={index} className={styles.mark}>
        {text}
      </mark>
    ) : (
      text
    ),
  );
}

function written(value: unknown): string {
  const line = json(value);
  return line.length <= LINE ? line : json(value, 2);
}

/** The beginning of a long text, and the rest when it is asked for: drawing it may take a while. */
function Shortened({ text, children }: { text: string; children: (shown: string) => ReactNode }) {
  const [isWhole, setIsWhole] = useState(false);
  if (isWhole || text.length <= SHOWN) {
    return children(text);
  }
  return (
    <>
      {children(`${text.slice(0, SHOWN)} …`)}
      <Button onClick={() => setIsWhole(true)}>Show all {counted(text.length, "character")}</Button>
    </>
  );
}
