import { type ReactNode, useCallback } from "react";
import type { Pages } from "../api/paging.ts";
import { Problem } from "../api/problem.ts";
import { Button } from "./Button.tsx";
import styles from "./PagedList.module.css";
import { VirtualList } from "./VirtualList.tsx";

const AHEAD = 10; // rows before the end at which the next page is fetched

interface Props<Row> {
  label: string;
  /** What more is loaded of: "sessions". */
  what: string;
  pages: Pages;
  /** The rows of all pages: the same array for as long as they are the same. */
  rows: readonly Row[];
  /** What tells rows apart: one and the same function. */
  keyOf: (row: Row) => string;
  /** About how high a row is, in pixels. */
  height: number;
  isChosen: (row: Row) => boolean;
  /** With it, `j` and `k` go down and up. */
  choose: ((row: Row) => void) | undefined;
  row: (row: Row, index: number) => ReactNode;
}

/** A list that is read page by page as one nears its end; a page may be empty and not the last. */
export function PagedList<Row>({ label, what, pages, rows, keyOf, height, isChosen, choose, row }: Props<Row>) {
  const { hasNextPage, isFetching, isError, fetchNextPage } = pages;
  const count = rows.length;
  const seen = useCallback(
    (_: number, last: number) => {
      if (hasNextPage && !isFetching && !isError && last >= count - AHEAD) {
        void fetchNextPage();
      }
    },
    [hasNextPage, isFetching, isError, fetchNextPage, count],
  );
  const keyAt = useCallback((index: number) => (index < rows.length ? keyOf(rows[index]!) : "more"), [rows, keyOf]);
  return (
    <div className={styles.list}>
      <VirtualList
        label={label}
        count={count + Number(hasNextPage)}
        height={height}
        keyOf={keyAt}
        chosen={rows.findIndex(isChosen)}
        choose={choose && ((index) => index < count && choose(rows[index]!))}
        seen={seen}
        row={(index) => (index < count ? row(rows[index]!, index) : <More pages={pages} what={what} />)}
      />
    </div>
  );
}

function More({ pages: { isError, error, fetchNextPage }, what }: { pages: Pages; what: string }) {
  return (
    <div className={styles.more}>
      {isError ? (
        <Button onClick={() => void fetchNextPage()}>Try again: {Problem.from(error).what}</Button>
      ) : (
        `Loading more ${what} …`
      )}
    </div>
  );
}
