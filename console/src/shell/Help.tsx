import { useState } from "react";
import { Button } from "../design/Button.tsx";
import { Dialog } from "../design/Dialog.tsx";
import { keysWork, switchKeys } from "../design/keys.ts";
import styles from "./Help.module.css";
import { SCREENS } from "./screens.ts";

type Meanings = readonly (readonly [key: string, meaning: string])[];

const KEYS: Readonly<Record<string, Meanings>> = {
  "On every screen": [
    ["/", "search; in the chat, write a message"],
    ["j", "next row"],
    ["k", "previous row"],
    ["Esc", "close the dialog or menu"],
    ["?", "show this help"],
  ],
  "Go to": SCREENS.map(({ key, name }) => [key, name]),
  "In the chat": [
    ["Enter", "send"],
    ["Shift Enter", "new line"],
  ],
  "On the slider of a session": [
    ["→", "next event"],
    ["←", "previous event"],
  ],
};

/** Which keys do what. */
export function Help({ open, close }: { open: boolean; close: () => void }) {
  const [work, setWork] = useState(keysWork);
  const change = (on: boolean): void => {
    switchKeys(on);
    setWork(on);
  };
  return (
    <Dialog title="Keyboard shortcuts" open={open} close={close}>
      <div className={styles.groups}>
        {Object.entries(KEYS).map(([where, keys]) => (
          <section key={where}>
            <h3>{where}</h3>
            <dl className={styles.keys}>
              {keys.map(([key, meaning]) => (
                <div key={key}>
                  <dt>
                    {key.split(" ").map((each) => (
                      <kbd key={each}>{each}</kbd>
                    ))}
                  </dt>
                  <dd>{meaning}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      {/* The first thing gets the focus: it should not be what switches them off. */}
      <form method="dialog" className={styles.foot}>
        <Button type="submit">Close</Button>
        <label>
          <input type="checkbox" checked={work} onChange={({ target }) => change(target.checked)} /> Enable
          single-letter shortcuts
        </label>
      </form>
    </Dialog>
  );
}
