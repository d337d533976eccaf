import styles from "./Score.module.css";
import { type Explained, PARTS, type PartName, type Scale, place, segments, written } from "./parts.ts";

/** A score drawn as its parts, on the scale of all that are beside it; told in words where nothing else tells them. */
export function ScoreBar({ scored, scale, isTold }: { scored: Explained; scale: Scale; isTold: boolean }) {
  const takesAway = scored.shares.some(({ units }) => units < 0);
  const words = scored.shares.map(({ name, units }) => `${name} ${written(units)}`).join(", ");
  return (
    <div
      className={styles.bar}
      {...(isTold ? { "aria-hidden": true } : { role: "img", "aria-label": `${written(scored.units)}: ${words}` })}
    >
      {segments(scored, scale).map(({ name, units, from, length }) => (
        <span
          key={name}
          className={`${styles.segment} ${styles[name]}`}
          data-takes={units < 0 || undefined}
          title={`${name} ${written(units)}`}
          style={{ left: percent(from), width: percent(length) }}
        />
      ))}
      {scale.lowest < 0 && <span className={styles.zero} style={{ left: percent(place(0, scale)) }} />}
      {takesAway && <span className={styles.sum} style={{ left: percent(place(scored.units, scale)) }} />}
    </div>
  );
}

/** The numbers of a score: its parts, and what they add up to. */
export function ScoreTable({ scored }: { scored: Explained }) {
  return (
    <table className={styles.table}>
      <caption className="hidden-label">Parts of the score</caption>
      <thead className="hidden-label">
        <tr>
          <th scope="col">Part</th>
          <th scope="col">Meaning</th>
          <th scope="col">Points</th>
        </tr>
      </thead>
      <tbody>
        {scored.shares.map(({ name, units }) => (
          <tr key={name}>
            <th scope="row">
              <Swatch name={name} />
              {name}
            </th>
            <td className={styles.meaning}>{meaningOf(name)}</td>
            <td className={styles.points}>{written(units)}</td>
          </tr>
        ))}
      </tbody>
      <tfoot>
        <tr>
          <th scope="row">score</th>
          <td className={styles.meaning}>sum of the parts, which are rounded so that they add up</td>
          <td className={styles.points}>{written(scored.units)}</td>
        </tr>
      </tfoot>
    </table>
  );
}

/** Which colour is which part, of those that are drawn. */
export function Legend({ several }: { several: readonly Explained[] }) {
  const drawn = new Set(several.flatMap(({ shares }) => shares.map(({ name }) => name)));
  return (
    <ul className={styles.legend} aria-label="Parts of the scores">
      {PARTS.filter(({ name }) => drawn.has(name)).map(({ name, meaning }) => (
        <li key={name} title={meaning}>
          <Swatch name={name} />
          {name}
        </li>
      ))}
    </ul>
  );
}

function Swatch({ name }: { name: PartName }) {
  return <span className={`${styles.swatch} ${styles[name]}`} aria-hidden="true" />;
}

function meaningOf(sought: PartName): string {
  return PARTS.find(({ name }) => name === sought)!.meaning;
}

function percent(fraction: number): string {
  return `${100 * fraction}%`;
}
