import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import type { Me } from "../api/schema.ts";
import { useKeys } from "../design/keys.ts";
import { Away } from "./Away.tsx";
import styles from "./Frame.module.css";
import { Help } from "./Help.tsx";
import { Rail } from "./Rail.tsx";
import { useArrivals } from "./arrivals.ts";
import { SCREENS } from "./screens.ts";
import { focusSearch } from "./search.ts";

/** The way to the other screens, who is signed in, help; and the screen. */
export function Frame({ me, children }: { me: Me | undefined; children: ReactNode }) {
  const navigate = useNavigate();
  const [helps, setHelps] = useState(false);
  useArrivals();
  useKeys({
    "/": focusSearch,
    "?": () => setHelps(true),
    ...Object.fromEntries(SCREENS.map(({ to, params, key }) => [key, () => void navigate({ to, params })])),
  });
  return (
    <div className={styles.frame}>
      <a className={styles.skip} href="#screen">
        Skip to content
      </a>
      <Rail me={me} help={() => setHelps(true)} />
      <main id="screen" className={styles.main} tabIndex={-1}>
        <Away />
        <div className={styles.screen}>{children}</div>
      </main>
      <Help open={helps} close={() => setHelps(false)} />
    </div>
  );
}
