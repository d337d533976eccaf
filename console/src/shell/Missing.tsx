import { Link } from "@tanstack/react-router";
import { EmptyState } from "../design/States.tsx";
import { useTitle } from "./title.ts";

/** There is no such screen. */
export function Missing() {
  useTitle("Nothing here");
  return (
    <EmptyState title="There is no such screen.">
      <p>
        The address may be old, or mistyped. <Link to="/">Go home</Link>.
      </p>
    </EmptyState>
  );
}
