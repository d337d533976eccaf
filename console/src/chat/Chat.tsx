import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";
import { talkative } from "../api/agents.ts";
import { PACE, reading } from "../api/queries.ts";
import { keep, kept } from "../design/kept.ts";
import { EmptyState, ErrorState, Loading } from "../design/States.tsx";
import { useMe } from "../shell/identity.ts";
import { useTitle } from "../shell/title.ts";
import { Room } from "./Room.tsx";
import { preferred } from "./agents.ts";
import { activeSession } from "./sessions.ts";

const route = getRouteApi("/chat/{-$agent}/{-$session}");
const LAST = "holdfast.agent";

/** The chat: finds out with whom and in which session, and has the address say so. */
export function Chat() {
  const given = route.useParams();
  const { user } = useMe();
  const agents = useQuery({ ...reading("GET /api/agents", {}), refetchInterval: PACE.steady });
  const known = talkative(agents.data?.agents ?? []);
  const agent = given.agent ?? preferred(known, kept(LAST))?.name;

  useEffect(() => {
    if (agent !== undefined) {
      keep(LAST, agent);
    }
  }, [agent]);

  if (!agents.data) {
    return (
      <Before>
        {agents.error ? (
          <ErrorState error={agents.error} retry={() => void agents.refetch()} />
        ) : (
          <Loading what="the conversation" />
        )}
      </Before>
    );
  }
  if (agent === undefined) {
    return (
      <Before>
        <EmptyState title={known.length === 0 ? "No agents yet" : "No agent is running"}>
          {known.length > 0 && (
            <p>Known agents: {known.map(({ name }) => name).join(", ")}. Their app is not running.</p>
          )}
          <p>
            Start the engine with <code>holdfast up</code>, which includes an agent, or with your own app:{" "}
            <code>holdfast up APP</code>. <code>holdfast init my-agent</code> creates an app to start from.
          </p>
        </EmptyState>
      </Before>
    );
  }
  return given.session === undefined ? (
    <Entrance user={user} agent={agent} />
  ) : (
    <Room
      key={JSON.stringify([user, agent, given.session])}
      user={user}
      agent={agent}
      session={given.session}
      agents={known}
    />
  );
}

/** Leads to the session that the person is in with the agent now: another device may have gone on to another. */
function Entrance({ user, agent }: { user: string; agent: string }) {
  const navigate = route.useNavigate();
  const active = useQuery({ ...activeSession(user, agent), refetchOnMount: "always" });
  const session = active.isSuccess && !active.isFetching ? active.data : undefined;

  useEffect(() => {
    if (session !== undefined) {
      void navigate({ params: { agent, session }, search: true, replace: true });
    }
  }, [agent, session, navigate]);

  return (
    <Before>
      {active.isError && !active.isFetching ? (
        <ErrorState error={active.error} retry={() => void active.refetch()} />
      ) : (
        <Loading what="the conversation" />
      )}
    </Before>
  );
}

/** The screen before there is a room to show. */
function Before({ children }: { children: ReactNode }) {
  useTitle("Chat");
  return (
    <>
      <h1 className="hidden-label">Chat</h1>
      {children}
    </>
  );
}
