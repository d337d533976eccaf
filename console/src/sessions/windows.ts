/** Events are read in windows of this many: the one of number 0 has the events 1 to SIZE. */
export const SIZE = 100;
const NEAR = 10;

/** The window that an event is in; the beginning, which is no event, counts to the first. */
export function windowOf(seq: number): number {
  return Math.max(0, Math.floor((seq - 1) / SIZE));
}

/** The windows from the one to the other, both among them. */
export function windowsBetween(first: number, last: number): number[] {
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index);
}

/** What a window is asked for with. */
export function askedFor(window: number): { since: number; limit: number } {
  return { since: window * SIZE, limit: SIZE };
}

/** Whether what was read is to be forgotten: it is far from what is in sight. */
export function isFar(since: number, first: number, last: number): boolean {
  const window = since / SIZE;
  return window < first - NEAR || window > last + NEAR;
}
