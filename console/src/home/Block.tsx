import { type ReactNode, useId } from "react";
import styles from "./Block.module.css";

interface Props {
  title: string;
  /** Something short beside the title. */
  aside?: ReactNode;
  id?: string;
  children: ReactNode;
}

/** A part of the screen that stands for itself: what fails in it leaves the others as they are. */
export function Block({ title, aside, id, children }: Props) {
  const heading = useId();
  return (
    <section id={id} className={styles.block} aria-labelledby={heading}>
      <header className={styles.header}>
        <h2 id={heading}>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}
