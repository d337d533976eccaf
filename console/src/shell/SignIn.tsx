import { useId } from "react";
import { root } from "../api/root.ts";
import { Button } from "../design/Button.tsx";
import styles from "./SignIn.module.css";
import { useTitle } from "./title.ts";

/** How a browser comes in where a key is needed; then it is where it wanted to be. */
export function SignIn() {
  const id = useId();
  useTitle("Sign in");
  return (
    <main className={styles.page}>
      <div className={styles.card}>
        <p className={styles.brand}>Holdfast</p>
        <h1>Sign in</h1>
        <p>This engine requires you to sign in. A browser signs in with a link that works once:</p>
        <ol>
          <li>
            On the machine that runs the engine, run <code>holdfast keys link</code>. <code>holdfast up</code> also
            prints a link when it starts.
          </li>
          <li>Open the link in this browser, or paste it here.</li>
        </ol>
        <form method="post" action={`${root}/login`} className={styles.form}>
          <input type="hidden" name="to" value={location.pathname.slice(root.length) + location.search} />
          <label htmlFor={id}>Sign-in link</label>
          <input id={id} name="link" required autoComplete="off" spellCheck={false} autoFocus />
          <Button kind="primary" type="submit">
            Sign in
          </Button>
        </form>
        <p className={styles.quiet}>
          A link expires after ten minutes or when it is used. Then create a new one. Programs use an API key instead:{" "}
          <code>holdfast keys create</code>.
        </p>
      </div>
    </main>
  );
}
