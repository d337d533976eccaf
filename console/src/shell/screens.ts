/** The screens, in the order in which they are offered; `key` opens one, from its beginning. */
export const SCREENS = [
  { to: "/", params: {}, name: "Home", key: "h", icon: "home" },
  {
    to: "/chat/{-$agent}/{-$session}",
    params: { agent: undefined, session: undefined },
    name: "Chat",
    key: "c",
    icon: "chat",
  },
  {
    to: "/sessions/{-$conversation}",
    params: { conversation: undefined },
    name: "Sessions",
    key: "s",
    icon: "sessions",
  },
  { to: "/memory/{-$memory}", params: { memory: undefined }, name: "Memory", key: "m", icon: "memory" },
  { to: "/connections", params: {}, name: "Connections", key: "n", icon: "connections" },
] as const;
