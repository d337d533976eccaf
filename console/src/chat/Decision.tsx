import { useMutation } from "@tanstack/react-query";
import { useId, useState } from "react";
import { call } from "../api/client.ts";
import { Button } from "../design/Button.tsx";
import { ErrorState } from "../design/States.tsx";
import { Tag } from "../design/Tag.tsx";
import type { Approval } from "../live/talk.ts";
import styles from "./Cards.module.css";

const ASKED: Record<string, string> = {
  listed: "This tool call needs your approval.",
  unknown: "An earlier attempt may have taken effect. Run this tool call again?",
};

/** A call that waits for a person, or what they decided about it. */
export function Decision({ approval }: { approval: Approval }) {
  const remark = useId();
  const [comment, setComment] = useState("");
  const decide = useMutation({
    mutationFn: (decision: "approve" | "deny") =>
      call("POST /api/approvals/{id}", { path: { id: approval.id }, body: { decision, comment } }),
  });
  if (approval.decision !== null) {
    return (
      <p>
        <Tag tone={approval.decision === "approved" ? "good" : "bad"}>{approval.decision}</Tag>
        {approval.by && ` by ${approval.by}`}
      </p>
    );
  }
  return (
    <div className={styles.decision} role="group" aria-label={`Approve or deny ${approval.tool}`}>
      <p>
        <strong>{ASKED[approval.reason] ?? ASKED["listed"]}</strong>
      </p>
      <label htmlFor={remark} className="hidden-label">
        Reason for the agent
      </label>
      <input
        id={remark}
        value={comment}
        placeholder="Reason for the agent (optional)"
        onChange={(event) => setComment(event.target.value)}
      />
      <div className={styles.buttons}>
        <Button kind="primary" disabled={decide.isPending} onClick={() => decide.mutate("approve")}>
          Approve
        </Button>
        <Button kind="danger" disabled={decide.isPending} onClick={() => decide.mutate("deny")}>
          Deny
        </Button>
      </div>
      {decide.error && <ErrorState error={decide.error} />}
    </div>
  );
}
