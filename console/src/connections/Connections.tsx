import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { address } from "../api/client.ts";
import { PACE, reading } from "../api/queries.ts";
import { Read } from "../design/Read.tsx";
import { EmptyState } from "../design/States.tsx";
import { cli, curl, python } from "../design/commands.ts";
import { Screen } from "../shell/Screen.tsx";
import { useMe } from "../shell/identity.ts";
import { ConnectionView } from "./ConnectionView.tsx";
import styles from "./Connections.module.css";

const route = getRouteApi("/connections");

/** The back ends that are called with a user's own account, and whether the user has agreed. */
export function Connections() {
  const { source } = route.useSearch();
  const { user } = useMe();
  const query = useQuery({ ...reading("GET /api/connections", {}), refetchInterval: PACE.slow });
  const ways = {
    cli: cli("connections", "ls"),
    curl: curl("GET", address("/api/connections")),
    python: python(`for each in await engine.connections.list(${JSON.stringify(user)}):`, "    print(each)"),
  };
  return (
    <Screen title="Connections" ways={ways}>
      <p className={styles.about}>
        Some back ends are called with your own account there. You agree once; you can disconnect at any time.
      </p>
      <Read query={query} what="connections">
        {({ connections }) =>
          connections.length === 0 ? (
            <EmptyState title="Nothing to connect">
              <p>No source needs your consent. An admin adds one with the identity “user”.</p>
            </EmptyState>
          ) : (
            <ul className={styles.list}>
              {connections.map((connection) => (
                <ConnectionView
                  key={connection.source}
                  connection={connection}
                  isWanted={connection.source === source}
                />
              ))}
            </ul>
          )
        }
      </Read>
    </Screen>
  );
}
