const whole = new Intl.NumberFormat("en");
const share = new Intl.NumberFormat("en", { style: "percent" });

/** A number as people write it. */
export function figure(value: number): string {
  return whole.format(value);
}

/** How much of something, as a percentage. */
export function percentage(part: number, of: number): string {
  return share.format(of > 0 ? part / of : 0);
}

/** How many of something, in words. */
export function counted(value: number, one: string): string {
  return `${figure(value)} ${one}${value === 1 ? "" : "s"}`;
}

/** What a model read and wrote. */
export function tokens(input: number, output: number): string {
  return `${figure(input)} in, ${figure(output)} out`;
}

/** A cost, in whatever the prices are set in; nothing where none are. */
export function price(cost: number): string {
  return cost === 0 ? "–" : cost < 0.01 ? cost.toPrecision(2) : cost.toFixed(2);
}

/** The time between two moments, as precise as it matters. */
export function lasted(from: string, to: string): string {
  const seconds = Math.max(0, Date.parse(to) - Date.parse(from)) / 1000;
  return seconds < 10 ? `${seconds.toFixed(1)} s` : `${figure(Math.round(seconds))} s`;
}
