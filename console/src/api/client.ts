import { accessEnded } from "./access.ts";
import { Problem } from "./problem.ts";
import { root } from "./root.ts";
import type { Operations } from "./schema.ts";

type Parts = { path: object; query: object; body: unknown; answer: unknown };
type Part<Name extends keyof Operations, Key extends keyof Parts> = Operations[Name][Key];
/** What an operation needs, and nothing that it does not take. */
export type Given<Name extends keyof Operations> = (keyof Part<Name, "path"> extends never
  ? { path?: undefined }
  : { path: Part<Name, "path"> }) & { query?: Part<Name, "query">; signal?: AbortSignal } & (Part<
    Name,
    "body"
  > extends undefined
    ? { body?: undefined }
    : { body: Part<Name, "body"> });

const PATIENCE = 30_000; // milliseconds: a connection that fell silent, as in a sleeping laptop, is never closed
const PATIENCE_WITH_HEALTH = 10_000;
const HEALTH = "/readyz";

/** Call an operation of the API, as `GET /api/runs/{id}`; what goes wrong is thrown as a Problem. */
export async function call<Name extends keyof Operations>(
  name: Name,
  given: Given<Name>,
): Promise<Part<Name, "answer">> {
  const [method, path] = name.split(" ") as [string, string];
  const request: RequestInit = { method, headers: { accept: "application/json" }, signal: given.signal ?? null };
  if (given.body !== undefined) {
    request.body = JSON.stringify(given.body);
    request.headers = { ...request.headers, "content-type": "application/json" };
  }
  const patience = path === HEALTH ? PATIENCE_WITH_HEALTH : PATIENCE;
  const response = await reach(address(path, given.path, given.query), request, patience);
  if (response.status === 204) {
    return undefined as Part<Name, "answer">;
  }
  const answer = await response.json().catch((error: unknown) => {
    if (response.ok) {
      throw interrupted(error); // it broke off, and is not what was asked for
    }
    return null;
  });
  if (!response.ok && !isHealth(path, answer)) {
    throw refused(response.status, answer);
  }
  return answer;
}

/** As the browser's `fetch`, for those who make requests of their own; what goes wrong is thrown as a Problem. */
export async function fetched(url: URL | RequestInfo, request: RequestInit = {}): Promise<Response> {
  const response = await reach(url, request, PATIENCE);
  if (!response.ok) {
    throw refused(response.status, await response.json().catch(() => null));
  }
  return response;
}

/** The address of an operation on this server, with its parameters. */
export function address(path: string, parts: object = {}, query: object = {}): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String((parts as Record<string, unknown>)[name])),
  );
  const asked = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const words = new URLSearchParams(asked.map(([key, value]) => [key, String(value)])).toString();
  return root + filled + (words && `?${words}`);
}

async function reach(url: URL | RequestInfo, request: RequestInit, patience: number): Promise<Response> {
  const enough = AbortSignal.timeout(patience);
  const signal = request.signal ? AbortSignal.any([request.signal, enough]) : enough;
  try {
    return await fetch(url, { ...request, signal });
  } catch (error) {
    throw interrupted(error);
  }
}

function refused(status: number, answer: unknown): Problem {
  const problem = Problem.of(status, answer);
  if (problem.isSignedOut) {
    accessEnded();
  }
  return problem;
}

/** What a request came to nothing by: whoever asked wants no answer any more, or the server cannot be reached. */
function interrupted(error: unknown): unknown {
  return error instanceof DOMException && error.name === "AbortError" ? error : Problem.unreachable();
}

/** An engine that is down answers how its parts do, with 503; a proxy before it has no parts. */
function isHealth(path: string, answer: unknown): boolean {
  return path === HEALTH && Array.isArray((answer as { parts?: unknown } | null)?.parts);
}
