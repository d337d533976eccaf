import { useMutation } from "@tanstack/react-query";
import { call } from "../api/client.ts";
import { queries, reading } from "../api/queries.ts";
import type { Memory } from "../api/schema.ts";
import { Button } from "../design/Button.tsx";
import { ErrorState } from "../design/States.tsx";
import { toast } from "../design/toasts.ts";
import styles from "./Fields.module.css";
import { route, searchOf } from "./address.ts";
import { namedHolder } from "./holders.ts";
import { changed } from "./queries.ts";

/** Asks whether a memory is to be deleted, and does it. */
export function Forgetting({ memory: { id, owner, content }, close }: { memory: Memory; close: () => void }) {
  const navigate = route.useNavigate();
  const holder = namedHolder(owner);
  const forgetting = useMutation({
    mutationFn: () => call("DELETE /api/memories/{id}", { path: { id } }),
    onSuccess: async () => {
      toast("Memory deleted.", "good");
      close();
      // To those of whose it was, which nothing tells any more; and before it is read again and missed.
      const search = holder && searchOf(holder);
      await navigate({ params: { memory: undefined }, search: (now) => ({ ...now, ...search }) });
      queries.removeQueries({ queryKey: reading("GET /api/memories/{id}", { path: { id } }).queryKey });
      await changed();
    },
  });
  return (
    <>
      <p>
        <q>{content}</q>
      </p>
      <p>
        This deletes the memory and all its versions. You cannot undo it. To keep the memory without recalling it, bury
        it instead.
      </p>
      {forgetting.error && <ErrorState error={forgetting.error} />}
      <div className={styles.ending}>
        <Button onClick={close}>Cancel</Button>
        <Button kind="danger" disabled={forgetting.isPending} onClick={() => forgetting.mutate()}>
          Forget permanently
        </Button>
      </div>
    </>
  );
}
