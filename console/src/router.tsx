import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { root } from "./api/root.ts";
import { ErrorState } from "./design/States.tsx";
import { Missing } from "./shell/Missing.tsx";
import { Shell } from "./shell/Shell.tsx";

// Every screen is fetched when it is first opened. The server knows the same paths: `SCREENS` in server/files.py.
const shell = createRootRoute({ component: Shell, notFoundComponent: Missing, errorComponent: ErrorState });

const home = createRoute({
  getParentRoute: () => shell,
  path: "/",
  component: lazyRouteComponent(() => import("./home/Home.tsx"), "Home"),
});

const chat = createRoute({
  getParentRoute: () => shell,
  path: "/chat/{-$agent}/{-$session}",
  validateSearch: (given: Record<string, unknown>) => optional({ run: word(given["run"]) }),
  component: lazyRouteComponent(() => import("./chat/Chat.tsx"), "Chat"),
});

const sessions = createRoute({
  getParentRoute: () => shell,
  path: "/sessions/{-$conversation}",
  validateSearch: (given: Record<string, unknown>) =>
    optional({
      q: word(given["q"]),
      agent: word(given["agent"]),
      user: word(given["user"]),
      at: number(given["at"]),
      run: word(given["run"]),
    }),
  component: lazyRouteComponent(() => import("./sessions/Sessions.tsx"), "Sessions"),
});

const memory = createRoute({
  getParentRoute: () => shell,
  path: "/memory/{-$memory}",
  validateSearch: (given: Record<string, unknown>) =>
    optional({
      scope: word(given["scope"]),
      name: word(given["name"]),
      q: word(given["q"]),
      past: flag(given["past"]),
      explain: flag(given["explain"]),
      missed: flag(given["missed"]),
    }),
  component: lazyRouteComponent(() => import("./memory/Memory.tsx"), "Memory"),
});

const connections = createRoute({
  getParentRoute: () => shell,
  path: "/connections",
  validateSearch: (given: Record<string, unknown>) => optional({ source: word(given["source"]) }),
  component: lazyRouteComponent(() => import("./connections/Connections.tsx"), "Connections"),
});

export const router = createRouter({
  routeTree: shell.addChildren([home, chat, sessions, memory, connections]),
  basepath: root || "/",
  defaultPreload: "intent",
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}

/** No address needs to have any of it. */
function optional<Search>(search: Search): Partial<Search> {
  return search;
}

function word(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : typeof value === "number" ? String(value) : undefined;
}

function number(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

function flag(value: unknown): true | undefined {
  return value === true ? true : undefined;
}
