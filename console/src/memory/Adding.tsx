import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { call } from "../api/client.ts";
import { Dialog } from "../design/Dialog.tsx";
import { ErrorState } from "../design/States.tsx";
import { toast } from "../design/toasts.ts";
import { Ending, Field, Fields } from "./Fields.tsx";
import styles from "./Fields.module.css";
import { route, searchOf } from "./address.ts";
import { type Holder, SCOPES, type Scope, namedHolder } from "./holders.ts";
import { changed } from "./queries.ts";

interface Props {
  open: boolean;
  close: () => void;
  holder: Holder;
}

/** Asks what to remember, and for whom. */
export function Adding({ open, close, holder }: Props) {
  return (
    <Dialog title="Add a memory" open={open} close={close}>
      <Form close={close} holder={holder} />
    </Dialog>
  );
}

function Form({ close, holder }: Omit<Props, "open">) {
  const navigate = route.useNavigate();
  const [scope, setScope] = useState<Scope>(holder.scope);
  const [name, setName] = useState(holder.name ?? "");
  const [written, setWritten] = useState({ content: "", type: "fact", importance: 1 });
  const adding = useMutation({
    mutationFn: (owner: Holder) => call("POST /api/memories", { body: { owner, memories: [written] } }),
    onSuccess: async ({ memories: [memory] }, owner) => {
      toast("Memory added.", "good");
      close();
      await navigate({ params: { memory: memory?.id }, search: searchOf(owner) });
      await changed();
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const owner = namedHolder({ scope, name });
    if (owner) {
      adding.mutate(owner);
    }
  };
  return (
    <form className={styles.form} onSubmit={submit}>
      <Fields written={written} write={setWritten} />
      <div className={styles.pair}>
        <Field label="Owner">
          <select value={scope} onChange={({ target }) => setScope(target.value as Scope)}>
            {SCOPES.map((each) => (
              <option key={each.scope} value={each.scope}>
                {each.one}
              </option>
            ))}
          </select>
        </Field>
        {scope !== "organization" && (
          <Field label="Name">
            <input required value={name} onChange={({ target }) => setName(target.value)} />
          </Field>
        )}
      </div>
      {adding.error && <ErrorState error={adding.error} />}
      <Ending act="Add" busy={adding.isPending} cancel={close} />
    </form>
  );
}
