const UNREACHABLE = "unreachable";

/** What went wrong: what, why and what to do next, as the engine says it. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly what: string;
  readonly why: string;
  readonly next: string;

  constructor(status: number, code: string, what: string, why = "", next = "") {
    super(what);
    this.status = status;
    this.code = code;
    this.what = what;
    this.why = why;
    this.next = next;
  }

  /** The problem that an answer tells of; any other body is told by its status alone. */
  static of(status: number, answer: unknown): Problem {
    const { code, what, why, next } = (answer ?? {}) as Record<string, unknown>;
    return typeof what === "string"
      ? new Problem(status, text(code), what, text(why), text(next))
      : new Problem(status, "unknown", `the server returned HTTP ${status}`, "", "Check the output of `holdfast up`.");
  }

  static unreachable(): Problem {
    return new Problem(
      0,
      UNREACHABLE,
      "the server cannot be reached",
      "it may be stopped, or the network may be down",
      "Start it with `holdfast up`. This page reconnects by itself.",
    );
  }

  /** Any error that a screen may meet, as a problem. */
  static from(error: unknown): Problem {
    return error instanceof Problem
      ? error
      : new Problem(0, "broken", "the console had an internal error", String(error), "Reload the page.");
  }

  get isSignedOut(): boolean {
    return this.status === 401;
  }

  /** Whether it may be gone with the next try. */
  get isPassing(): boolean {
    return this.code === UNREACHABLE || this.status === 429 || this.status >= 502;
  }
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
