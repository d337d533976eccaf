const TICK = 30_000;

let ticks = 0;
let timer: ReturnType<typeof setInterval> | undefined;
const listeners = new Set<() => void>();

/** One clock for all that tells how long ago something was; it runs while somebody listens. */
export function onTick(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(tick, TICK);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** Another number at each tick. */
export function ticked(): number {
  return ticks;
}

function tick(): void {
  ticks += 1;
  for (const listener of listeners) {
    listener();
  }
}
