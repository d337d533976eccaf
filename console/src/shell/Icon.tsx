const PATHS = {
  home: "M3 10.5 12 3l9 7.5M5.5 9v11h13V9M10 20v-6h4v6",
  chat: "M4 5h16v11H9.5L5 20v-4H4z",
  sessions: "M8 6h12M8 12h12M8 18h12M4 6h.01M4 12h.01M4 18h.01",
  memory: "M6 3.5h12v17l-6-4.5-6 4.5zM9.5 8h5",
  connections: "M9.5 14.5l5-5M10.5 6.5l2-2a5 5 0 0 1 7 7l-2 2M13.5 17.5l-2 2a5 5 0 0 1-7-7l2-2",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  keys: "M3 6.5h18v11H3zM7 10h.01M12 10h.01M17 10h.01M8 14h8",
  leave: "M10 4H4.5v16H10M9.5 12H20M16 8l4 4-4 4",
  theme: "M12 3.5a8.5 8.5 0 1 0 0 17zM12 3.5a8.5 8.5 0 0 1 0 17",
  done: "M5 12.5l4.5 4.5L19 7.5",
} as const;

type IconName = keyof typeof PATHS;

/** A small drawing beside words that say the same. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      viewBox="0 0 24 24"
      width="1.25em"
      height="1.25em"
      fill="none"
      stroke="currentColor"
      strokeWidth={name === "more" || name === "sessions" ? 2.2 : 1.8}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
