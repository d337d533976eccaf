const access = new EventTarget();
const ENDED = "ended";

/** Tell that an answer said that nobody is signed in, or not any more. */
export function accessEnded(): void {
  access.dispatchEvent(new Event(ENDED));
}

/** Have something done whenever access has ended. */
export function onAccessEnded(act: () => void): void {
  access.addEventListener(ENDED, act);
}
