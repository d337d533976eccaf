/** What a server says of a call that failed; the same in JSON-RPC, in the legacy envelope and in a problem of HTTP. */
export interface Status {
  /** The HTTP status that it has, or would have. */
  readonly statusCode: number;
  /** A stable name of what went wrong, such as `invalid_input` or `forbidden`. */
  readonly code?: string;
  readonly message?: string;
  /** What went wrong, why, and what to do. */
  readonly description?: string;
  readonly severity?: string;
}

/** The server refused a call, or it failed there. */
export class RpcError extends Error {
  constructor(message: string, told?: { code?: number; data?: unknown; status?: Status });
  readonly name: "RpcError";
  /** What the server says of it: the description of its status object, where there is one. */
  readonly message: string;
  /** The code of JSON-RPC; of an answer in another form, the one that goes with its HTTP status. */
  readonly code: number;
  /** `error.data`, or the whole answer where it is in another form. */
  readonly data: unknown;
  readonly status: Status | undefined;
}

/** There is no answer: whether the call took effect is not known. */
export class TransportError extends Error {
  constructor(message: string, told?: { statusCode?: number; cause?: unknown });
  readonly name: "TransportError";
  /** The HTTP status, if there was one. */
  readonly statusCode: number | undefined;
  readonly cause?: unknown;
}

/** What a method takes and gives. */
export interface Method {
  params?: unknown;
  result?: unknown;
}

/** Services that are not described: any method, any params, any result. */
export type AnyServices = Record<string, { params?: any; result: any }>;

export interface ClientOptions {
  /** Where the calls go; `/rpc` of the page's own server unless given. */
  url?: string | URL;
  /** Send calls in the legacy form as JSON-RPC, too. A call by the name of its method always is JSON-RPC. */
  jsonrpc?: boolean;
  /** Headers of every request, or a function that is asked for them each time: a token may be renewed. */
  headers?: HeadersInit | (() => HeadersInit | Promise<HeadersInit>);
  /** Replaces `fetch`. */
  fetch?: (url: string | URL, request: RequestInit) => Promise<Response>;
  /** Milliseconds after which an HTTP request is given up. */
  timeout?: number;
  /** The most calls in one HTTP request; 50 unless given. */
  maxBatch?: number;
}

export interface CallOptions {
  /** Ends the waiting for this call, not for those that were sent with it. */
  signal?: AbortSignal | null;
}

/** A call as it was before JSON-RPC; `title`, `success` and `failure` are for the page and never sent. */
export interface LegacyCall {
  host: string;
  service: string;
  action: string;
  version: string;
  data?: unknown;
  title?: string;
  success?: string;
  failure?: string;
}

type Params<M> = M extends { params: infer P } ? P : M extends { params?: infer P } ? P | undefined : undefined;
type Result<M> = M extends { result: infer R } ? R : unknown;
type Given<M> =
  undefined extends Params<M>
    ? [params?: Params<M>, options?: CallOptions]
    : [params: Params<M>, options?: CallOptions];

export interface Client<Services> {
  /** Call a method by its name, `host/service/action/version`; calls of one turn are one HTTP request. */
  call<M extends keyof Services & string>(method: M, ...given: Given<Services[M]>): Promise<Result<Services[M]>>;
  /** Call in the legacy form. */
  call<R = any>(call: LegacyCall, options?: CallOptions): Promise<R>;
  /** Tell something that is not answered; the promise is settled when the server has it, and may be left alone. */
  notify<M extends keyof Services & string>(method: M, ...given: Given<Services[M]>): Promise<void>;
}

/** A client of the services at `url`; `Services` says what they take and give. */
export function createClient<Services extends { [M in keyof Services]: Method } = AnyServices>(
  options?: ClientOptions,
): Client<Services>;
