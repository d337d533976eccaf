import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useRef } from "react";
import { useKeys } from "./keys.ts";
import styles from "./VirtualList.module.css";

interface Props {
  /** How many rows there are, whether they are known yet or not. */
  count: number;
  row: (index: number) => ReactNode;
  /** What tells rows apart, where others may come before them. With another function all rows are measured anew. */
  keyOf?: (index: number) => string | number;
  label: string;
  /** About how high a row is, in pixels; each is measured when it is seen. */
  height?: number;
  chosen?: number | undefined;
  /** With it, `j` and `k` go down and up. */
  choose?: ((index: number) => void) | undefined;
  /** Which rows are in sight, to fetch what is missing of them. */
  seen?: ((first: number, last: number) => void) | undefined;
}

/** A list of any length, of which only the rows in sight are in the page. */
export function VirtualList({ count, row, keyOf, label, height = 44, chosen, choose, seen }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    ...(keyOf && { getItemKey: keyOf }),
    overscan: 6,
  });
  const items = rows.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items.at(-1)?.index ?? 0;

  useEffect(() => seen?.(first, last), [seen, first, last, count]);
  const isThere = chosen !== undefined && chosen >= 0 && chosen < count;
  useEffect(() => {
    if (isThere) {
      const sight = rows.calculateRange();
      const isNear = sight && chosen >= sight.startIndex - 1 && chosen <= sight.endIndex + 1;
      rows.scrollToIndex(chosen, { align: isNear ? "auto" : "center" });
    }
  }, [rows, chosen, isThere]);
  const step = (by: number): void => {
    if (choose && count > 0) {
      choose(Math.min(count - 1, Math.max(0, (chosen ?? (by > 0 ? -1 : count)) + by)));
    }
  };
  useKeys(choose ? { j: () => step(1), k: () => step(-1) } : {});

  return (
    <div ref={scroller} className={styles.scroller} role="list" aria-label={label} tabIndex={0}>
      <div className={styles.whole} style={{ height: rows.getTotalSize() }}>
        {items.map((item) => (
          <div
            key={item.key}
            ref={rows.measureElement}
            data-index={item.index}
            role="listitem"
            aria-setsize={count}
            aria-posinset={item.index + 1}
            aria-current={item.index === chosen || undefined}
            className={styles.row}
            style={{ transform: `translateY(${item.start}px)` }}
          >
            {row(item.index)}
          </div>
        ))}
      </div>
    </div>
  );
}
