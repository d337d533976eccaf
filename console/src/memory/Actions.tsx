import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../api/client.ts";
import type { Memory } from "../api/schema.ts";
import { Button } from "../design/Button.tsx";
import { Dialog } from "../design/Dialog.tsx";
import { complain } from "../design/toasts.ts";
import styles from "./Actions.module.css";
import { Editing } from "./Editing.tsx";
import { Forgetting } from "./Forgetting.tsx";
import { Superseding } from "./Superseding.tsx";
import { changed } from "./queries.ts";

interface Props {
  memory: Memory;
  /** Whether another took its place, and is there: then that one is what may be superseded. */
  isReplaced: boolean;
}

/** What can be done with a memory. */
export function Actions({ memory, isReplaced }: Props) {
  const [asks, setAsks] = useState<"edit" | "supersede" | "forget" | null>(null);
  const { pinned, buried, id } = memory;
  const pinning = useChange(() => call("POST /api/memories/{id}/pin", { path: { id }, body: { pinned: !pinned } }));
  const burying = useChange(() => call("POST /api/memories/{id}/bury", { path: { id }, body: { buried: !buried } }));
  const close = (): void => setAsks(null);
  return (
    <div className={styles.actions} role="group" aria-label="Actions">
      <Button
        onClick={() => pinning.mutate()}
        disabled={pinning.isPending}
        title="A pinned memory does not fade and is not deleted"
      >
        {pinned ? "Unpin" : "Pin"}
      </Button>
      <Button onClick={() => setAsks("edit")} title="Correct the memory">
        Edit
      </Button>
      {!isReplaced && (
        <Button onClick={() => setAsks("supersede")} title="Replace it with what is true now">
          Supersede
        </Button>
      )}
      <Button
        onClick={() => burying.mutate()}
        disabled={burying.isPending}
        title="A buried memory is kept but not recalled"
      >
        {buried ? "Unbury" : "Bury"}
      </Button>
      <Button kind="danger" onClick={() => setAsks("forget")} title="Delete it permanently">
        Forget
      </Button>
      <Dialog title="Edit memory" open={asks === "edit"} close={close}>
        <Editing memory={memory} close={close} />
      </Dialog>
      <Dialog title="Supersede memory" open={asks === "supersede"} close={close}>
        <Superseding memory={memory} close={close} />
      </Dialog>
      <Dialog title="Forget this memory?" open={asks === "forget"} close={close}>
        <Forgetting memory={memory} close={close} />
      </Dialog>
    </div>
  );
}

function useChange(change: () => Promise<Memory>) {
  return useMutation({
    mutationFn: change,
    onSuccess: changed,
    onError: complain,
  });
}
