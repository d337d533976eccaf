import type { EnginePart } from "../api/schema.ts";
import { Read } from "../design/Read.tsx";
import { Tag, type Tone } from "../design/Tag.tsx";
import { Words } from "../design/Words.tsx";
import { sentence } from "../design/sentence.ts";
import { useHealth } from "../shell/health.ts";
import { Block } from "./Block.tsx";
import styles from "./Parts.module.css";

const STATES: Record<EnginePart["state"], { tone: Tone; word: string }> = {
  ok: { tone: "good", word: "healthy" },
  reduced: { tone: "warn", word: "degraded" },
  down: { tone: "bad", word: "down" },
};
const NAMES: Readonly<Record<string, string>> = {
  database: "Database",
  embeddings: "Search by meaning",
  issuers: "Token issuers",
  keys: "API keys",
  log: "Log",
  memory: "Memory index",
  model: "Language model",
};

/** How every part does, and what to do about it. */
export function Parts() {
  const health = useHealth();
  const away = health.isError && health.data !== undefined;
  return (
    <Block id="health" title="Health" aside={away && <Tag tone="bad">server unreachable; last known state</Tag>}>
      <Read query={health} what="health">
        {({ parts }) => (
          <ul className={styles.parts}>
            {parts.map(({ name, state, detail }) => (
              <li key={name} className={styles.part}>
                <h3>{NAMES[name] ?? name}</h3>
                <Tag tone={STATES[state].tone}>{STATES[state].word}</Tag>
                {detail && (
                  <p>
                    <Words text={told(detail)} />
                  </p>
                )}
              </li>
            ))}
          </ul>
        )}
      </Read>
    </Block>
  );
}

/** What begins with a word is a sentence; names, such as a model's, stay as they are. */
function told(detail: string): string {
  return /^[a-z]+ /.test(detail) ? sentence(detail) : detail;
}
