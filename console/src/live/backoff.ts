const FIRST = 100; // milliseconds
const LONGEST = 15_000;

/** How long to wait before another try: longer from try to try, and not as long as everybody else. */
export function pause(tries: number, chance: number): number {
  const most = Math.min(LONGEST, FIRST * 2 ** Math.min(tries, 20));
  return most / 2 + (most / 2) * chance;
}
