import type { ButtonHTMLAttributes } from "react";
import styles from "./Button.module.css";

type Kind = "plain" | "primary" | "danger" | "quiet";

/** How a link looks that does what a button would. */
export const buttonLike = styles.button;

/** A button; `primary` is what a person most likely wants here, and there is one of it. */
export function Button({
  kind = "plain",
  className = "",
  ...rest
}: ButtonHTMLAttributes<HTMLButtonElement> & { kind?: Kind }) {
  return <button type="button" className={`${styles.button} ${styles[kind]} ${className}`} {...rest} />;
}
