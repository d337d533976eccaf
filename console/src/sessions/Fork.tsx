import { useMutation } from "@tanstack/react-query";
import { call } from "../api/client.ts";
import { stale } from "../api/queries.ts";
import type { Conversation } from "../api/schema.ts";
import { Button } from "../design/Button.tsx";
import { complain, toast } from "../design/toasts.ts";
import { route, within } from "./address.ts";

/** Makes a copy of a conversation up to an event, and opens it. */
export function Fork({ talk, at }: { talk: Conversation; at: number }) {
  const navigate = route.useNavigate();
  const fork = useMutation({
    mutationFn: () => call("POST /api/conversations/{id}/fork", { path: { id: talk.id }, body: { at } }),
    onSuccess: async ({ id, forked_at }) => {
      toast(`Forked at event ${forked_at}: this is the copy.`, "good");
      void stale("GET /api/conversations");
      await navigate({
        params: { conversation: id },
        search: (now) => ({ ...within(now), at: forked_at ?? undefined }),
      });
      document.getElementById("session")?.focus();
    },
    onError: complain,
  });
  return (
    <Button kind="primary" disabled={fork.isPending} onClick={() => fork.mutate()}>
      Fork here
    </Button>
  );
}
