import { type ReactNode, useEffect, useId, useRef } from "react";
import styles from "./Dialog.module.css";

interface Props {
  title: string;
  open: boolean;
  close: () => void;
  children: ReactNode;
}

/** Something that is asked before anything else goes on; what it holds begins anew whenever it opens. */
export function Dialog({ title, open, close, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    if (open) {
      dialog.current?.showModal();
    } else {
      dialog.current?.close();
    }
  }, [open]);
  return (
    <dialog ref={dialog} className={styles.dialog} onClose={close} aria-labelledby={id}>
      {open && (
        <>
          <h2 id={id}>{title}</h2>
          {children}
        </>
      )}
    </dialog>
  );
}
