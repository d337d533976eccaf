import { Outlet } from "@tanstack/react-router";
import { ErrorState, Loading } from "../design/States.tsx";
import { Toasts } from "../design/Toasts.tsx";
import { Frame } from "./Frame.tsx";
import { SignIn } from "./SignIn.tsx";
import { Signed, useIdentity } from "./identity.ts";

/** What is around every screen; the screens themselves are for those who are signed in. */
export function Shell() {
  const { data: me, error, refetch, who } = useIdentity();
  return (
    <>
      {me === null ? (
        <SignIn />
      ) : (
        <Frame me={me}>
          {me ? (
            <Signed key={who} value={me}>
              <Outlet />
            </Signed>
          ) : error ? (
            <ErrorState error={error} retry={() => void refetch()} />
          ) : (
            <Loading what="the console" />
          )}
        </Frame>
      )}
      <Toasts />
    </>
  );
}
