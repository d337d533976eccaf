const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const exact = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const STEPS = [
  ["minute", 60],
  ["hour", 24],
  ["day", 30],
  ["month", 12],
  ["year", Number.POSITIVE_INFINITY],
] as const;

/** How long ago a moment was, in the words of a person, who does not count seconds. */
export function ago(moment: string, now: Date = new Date()): string {
  let amount = (Date.parse(moment) - now.getTime()) / 60_000;
  if (Math.abs(amount) < 1) {
    return amount > 0 ? "in a moment" : "just now";
  }
  for (const [unit, size] of STEPS) {
    if (Math.abs(amount) < size) {
      return relative.format(Math.trunc(amount), unit);
    }
    amount /= size;
  }
  return moment;
}

/** A moment to the second. */
export function exactly(moment: string): string {
  return exact.format(new Date(moment));
}
