import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Button } from "../design/Button.tsx";
import { complain } from "../design/toasts.ts";
import styles from "./Room.module.css";
import { enterSession } from "./sessions.ts";

interface Props {
  user: string;
  agent: string;
  session: string;
  active: string;
}

/** Says that this is not the session that the person is in with the agent. */
export function OtherSession({ user, agent, session, active }: Props) {
  const enter = useMutation({
    mutationFn: () => enterSession(user, agent, session),
    onError: complain,
  });
  return (
    <div className={styles.notice} role="note">
      <p>
        This is not your active session with {agent}. Your messages go to this session; your devices continue to open{" "}
        <Link to="/chat/{-$agent}/{-$session}" params={{ agent, session: active }}>
          the active one
        </Link>
        .
      </p>
      <Button disabled={enter.isPending} onClick={() => enter.mutate()}>
        Make this session active
      </Button>
    </div>
  );
}
