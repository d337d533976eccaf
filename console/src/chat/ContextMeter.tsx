import styles from "./ContextMeter.module.css";
import type { Context } from "../api/context.ts";
import { figure, percentage } from "../design/figures.ts";

const NAMES: Record<string, string> = {
  instructions: "Instructions",
  skills: "Skills",
  tools: "Tools",
  notes: "Notes",
  summary: "Summary",
  memories: "Memories",
  window: "Messages",
};

/** How much of the model's window a step took, part by part, and why each part is there. */
export function ContextMeter({ context }: { context: Context }) {
  const { tokens, limit } = context;
  const parts = context.parts.filter((part) => part.tokens > 0 || part.leftOut > 0);
  const whole = limit ?? tokens;
  const told = limit === null ? `${figure(tokens)} tokens` : `${figure(tokens)} of ${figure(limit)} tokens`;
  return (
    <figure className={styles.meter}>
      <figcaption className={styles.caption}>
        {told}
        {limit !== null && <span> · {percentage(tokens, limit)}</span>}
      </figcaption>
      <div
        className={styles.bar}
        role="meter"
        aria-label="Context"
        aria-valuenow={tokens}
        aria-valuemax={whole}
        aria-valuetext={told}
      >
        {parts
          .filter((part) => part.tokens > 0)
          .map(({ name, tokens: taken }) => (
            <span key={name} data-part={name} title={NAMES[name] ?? name} style={{ flexGrow: taken }} />
          ))}
        {limit !== null && <span data-part="free" title="Free" style={{ flexGrow: Math.max(0, limit - tokens) }} />}
      </div>
      <dl className={styles.parts}>
        {parts.map(({ name, tokens: taken, reason }) => (
          <div key={name}>
            <dt>
              <span className={styles.swatch} data-part={name} aria-hidden="true" /> {NAMES[name] ?? name}
            </dt>
            <dd className={styles.tokens}>{figure(taken)}</dd>
            <dd className={styles.reason}>{reason}</dd>
          </div>
        ))}
      </dl>
    </figure>
  );
}
