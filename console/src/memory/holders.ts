import type { OwnerName } from "../api/schema.ts";

export type Scope = NonNullable<OwnerName["scope"]>;

/** Whose memories are meant; the organization has no name. */
export interface Holder {
  readonly scope: Scope;
  readonly name: string | null;
}

interface Named {
  readonly scope?: string | undefined;
  readonly name?: string | null | undefined;
}

/** The scopes from the widest to the narrowest, as they are listed. */
export const SCOPES = [
  { scope: "organization", title: "Organization", one: "the organization" },
  { scope: "agent", title: "Agents", one: "the agent" },
  { scope: "user", title: "Users", one: "the user" },
  { scope: "session", title: "Sessions", one: "the session" },
] as const satisfies readonly { scope: Scope; title: string; one: string }[];

/** Whose memories an address names, in the words of a search; without a scope a user's. Undefined: nobody's. */
export function namedHolder({ scope = "user", name }: Named): Holder | undefined {
  const known = SCOPES.find((each) => each.scope === scope)?.scope;
  if (known === "organization") {
    return { scope: known, name: null };
  }
  return known === undefined || !name ? undefined : { scope: known, name };
}

/** An owner in words: "the user ann". */
export function told({ scope, name }: Holder): string {
  const { one } = SCOPES.find((each) => each.scope === scope)!;
  return name === null ? one : `${one} ${name}`;
}

export function isSame(one: Holder, other: Holder | undefined): boolean {
  return one.scope === other?.scope && one.name === other.name;
}
