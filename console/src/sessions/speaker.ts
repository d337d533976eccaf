import type { Node } from "../api/schema.ts";

type Role = "user" | "assistant" | "system" | "tool";

/** Who says an event, and as what. */
export interface Speaker {
  readonly role: Role;
  readonly name: string;
}

const ROLES: readonly unknown[] = ["user", "assistant", "system", "tool"] satisfies Role[];

/** Who speaks: as the payload says, else as the context `type:name:value` does. */
export function speakerOf({ context, payload }: Pick<Node, "context" | "payload">): Speaker {
  const [, kind = "", ...rest] = context.split(":");
  const name = rest.join(":");
  const said = payload?.["role"];
  if (ROLES.includes(said)) {
    return { role: said as Role, name };
  }
  return { role: roleOf(kind, name), name };
}

function roleOf(kind: string, name: string): Role {
  if (kind === "system") {
    return "system";
  }
  return kind !== "agent" ? "user" : name === "tool" ? "tool" : "assistant";
}
