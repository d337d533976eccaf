import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useRef } from "react";
import { Problem } from "../api/problem.ts";
import type { OwnerCount } from "../api/schema.ts";
import { Button } from "../design/Button.tsx";
import { Time } from "../design/Time.tsx";
import { figure } from "../design/figures.ts";
import styles from "./Holders.module.css";
import { PATH, route, searchOf } from "./address.ts";
import { type Holder, SCOPES, type Scope, isSame, told } from "./holders.ts";
import { holdersIn } from "./queries.ts";

const COUNTED = 10_000; // the server counts no further

/** The id by which a button opens them, where there is no room to have them in sight. */
export const HOLDERS = "memory-holders";

/** Who has memories, scope by scope. */
export function Holders({ chosen }: { chosen: Holder }) {
  const nav = useRef<HTMLElement>(null);
  const close = (): void => {
    if (nav.current?.matches(":popover-open")) {
      nav.current.hidePopover();
    }
  };
  return (
    <nav ref={nav} id={HOLDERS} popover="auto" className={styles.holders} aria-label="Memory owners" onClick={close}>
      {SCOPES.map(({ scope, title }) => (
        <InScope key={scope} scope={scope} title={title} chosen={chosen} />
      ))}
    </nav>
  );
}

function InScope({ scope, title, chosen }: { scope: Scope; title: string; chosen: Holder }) {
  const { data, error, isFetching, hasNextPage, fetchNextPage, refetch } = useInfiniteQuery(holdersIn(scope));
  const found = data?.pages.flatMap(({ owners }) => owners) ?? [];
  if (scope !== "session") {
    found.sort((one, other) => (one.name ?? "").localeCompare(other.name ?? "")); // sessions have the newest first
  }
  // Who is looked at stands there, also when they have nothing, or are on a page further down.
  const isLeftOut = chosen.scope === scope && !found.some((each) => isSame(each, chosen));
  const id = `memory-holders-${scope}`;
  return (
    <div role="group" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {error && (
        <Button onClick={() => void refetch()} title={Problem.from(error).why}>
          Try again: {Problem.from(error).what}
        </Button>
      )}
      {data && found.length === 0 && !hasNextPage && !isLeftOut && <p className={styles.none}>None yet</p>}
      <ul>
        {isLeftOut && data && <Row holder={chosen} isChosen />}
        {found.map((each) => (
          <Row key={each.name} holder={each} counted={each} isChosen={isSame(each, chosen)} />
        ))}
      </ul>
      {hasNextPage && (
        <Button
          kind="quiet"
          disabled={isFetching}
          onClick={(event) => {
            event.stopPropagation();
            void fetchNextPage();
          }}
        >
          More {title.toLowerCase()}
        </Button>
      )}
    </div>
  );
}

interface RowProps {
  holder: Holder;
  counted?: OwnerCount;
  isChosen: boolean;
}

function Row({ holder, counted, isChosen }: RowProps) {
  const { past } = route.useSearch();
  return (
    <li>
      <Link
        to={PATH}
        params={{ memory: undefined }}
        search={{ ...searchOf(holder), past }}
        className={styles.row}
        title={`Memories of ${told(holder)}`}
        aria-current={isChosen ? "true" : undefined}
        activeOptions={{ exact: true }}
      >
        <span className={styles.name}>{holder.name ?? "Everybody"}</span>
        {counted && (
          <span className={styles.count}>
            {counted.count >= COUNTED ? `${figure(COUNTED)}+` : figure(counted.count)}
            <span className="hidden-label">{counted.count === 1 ? " memory" : " memories"}</span>
          </span>
        )}
        {counted?.scope === "session" && (
          <span className={styles.about}>
            {[counted.user, counted.agent].filter(Boolean).join(", ")} <Time at={counted.newest} />
          </span>
        )}
      </Link>
    </li>
  );
}
