import { address } from "../api/client.ts";
import { cli, curl, python } from "../design/commands.ts";
import { Screen } from "../shell/Screen.tsx";
import { Addresses } from "./Addresses.tsx";
import { Errors } from "./Errors.tsx";
import styles from "./Home.module.css";
import { Parts } from "./Parts.tsx";
import { Steps } from "./Steps.tsx";

/** How the engine does, what to do first, and what went wrong last. */
export function Home() {
  const ways = {
    cli: cli("doctor"),
    curl: curl("GET", address("/readyz")),
    python: python("for part in await engine.parts():", "    print(part)"),
  };
  return (
    <Screen title="Home" ways={ways}>
      <div className={styles.home}>
        <Steps />
        <Parts />
        <Errors />
        <Addresses />
      </div>
    </Screen>
  );
}
