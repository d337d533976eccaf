import type { Memory } from "../api/schema.ts";
import { Tag } from "../design/Tag.tsx";
import { Time } from "../design/Time.tsx";
import styles from "./Remembered.module.css";
import { conditions } from "./condition.ts";

/** A memory in short: the beginning of what it says, of what kind it is, and how it is with it. */
export function Remembered({ memory }: { memory: Memory }) {
  return (
    <>
      <span className={styles.content} dir="auto">
        {memory.content}
      </span>
      <Facts memory={memory} />
    </>
  );
}

function Facts({ memory }: { memory: Memory }) {
  return (
    <span className={styles.facts}>
      <span>{memory.type}</span>
      <Time at={memory.at ?? memory.created_at} />
      {conditions(memory, new Date()).map(({ word, tone }) => (
        <Tag key={word} tone={tone}>
          {word}
        </Tag>
      ))}
    </span>
  );
}
