import { Button } from "../design/Button.tsx";
import { Tag } from "../design/Tag.tsx";
import type { LineState } from "../live/line.ts";

/** Whether the screen is connected, and what can be done if it is not. */
export function Connection({ line, reconnect }: { line: LineState; reconnect: () => void }) {
  return (
    <>
      <span role="status">
        {line.kind === "open" && <Tag tone="good">connected</Tag>}
        {line.kind === "connecting" && <Tag>connecting …</Tag>}
        {line.kind === "waiting" && <Tag tone="warn">reconnecting …</Tag>}
        {line.kind === "ended" && <Tag tone="bad">not connected</Tag>}
      </span>
      {(line.kind === "ended" || (line.kind === "waiting" && line.tries > 1)) && (
        <Button onClick={reconnect}>Connect now</Button>
      )}
    </>
  );
}
