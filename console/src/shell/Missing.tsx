import { Link } from "@tanstack/react-router";
import { EmptyState } from "../design/States.tsx";
import { useTitle } from "./title.ts";

/** There is no such screen. */
export function Missing() {
  useTitle("Page not found");
  return (
    <EmptyState title="Page not found">
      <p>
        The address may be old or mistyped. <Link to="/">Go to Home</Link>.
      </p>
    </EmptyState>
  );
}
