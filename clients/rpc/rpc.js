/**
 * Calls services by JSON-RPC 2.0, or in the envelope that was before it.
 *
 *     import { createClient } from "@holdfast/rpc";
 *     const client = createClient({ url: "/rpc" });
 *     const order = await client.call("lightapi.net/market/createOrder/0.1.0", { item: "tea" });
 *
 * Calls that are made in one turn of the event loop are one HTTP request; each has its own promise.
 *
 * @module @holdfast/rpc
 */

const MOST_IN_A_BATCH = 50; // fewer than a Holdfast server takes
const INVALID_PARAMS = -32602;
const INTERNAL_ERROR = -32603;
const OWN_CODES = -31000; // minus the HTTP status: an error that JSON-RPC has no code for

/** The server refused a call, or it failed there. */
export class RpcError extends Error {
  constructor(message, { code, data, status } = {}) {
    super(message);
    this.name = "RpcError";
    this.code = code;
    this.data = data;
    this.status = status;
  }
}

/** There is no answer: whether the call took effect is not known. */
export class TransportError extends Error {
  constructor(message, { statusCode, cause } = {}) {
    super(message, { cause });
    this.name = "TransportError";
    this.statusCode = statusCode;
  }
}

/** A client of the services at `url`. */
export function createClient({
  url = "/rpc",
  jsonrpc = false,
  headers = {},
  fetch = (...request) => globalThis.fetch(...request),
  timeout,
  maxBatch = MOST_IN_A_BATCH,
} = {}) {
  if (!Number.isInteger(maxBatch) || maxBatch < 1) {
    throw new RangeError(`maxBatch has to be a whole number from 1 on, not ${maxBatch}`);
  }
  let lastId = 0;
  let waiting = [];

  async function call(method, ...rest) {
    if (typeof method !== "object" || method === null) {
      const [params, options] = rest;
      return enqueue(method, params, options, ++lastId);
    }
    const { host, service, action, version, data } = method; // the rest is for the page, never for the server
    const [options] = rest;
    return jsonrpc
      ? enqueue([host, service, action, version].join("/"), data, options, ++lastId)
      : sendAlone({ host, service, action, version, data }, options);
  }

  function notify(method, params, options) {
    const taken = enqueue(method, params, options);
    taken.catch(() => {}); // whoever does not wait for it does not want to know
    return taken;
  }

  function enqueue(method, params, { signal } = {}, id) {
    if (typeof method !== "string" || method === "") {
      throw new TypeError(`a method is called by its name, not by ${String(method)}`);
    }
    // Now, and each by itself: what cannot be written fails alone, and what is changed later was not meant.
    const entry = pending(JSON.stringify({ jsonrpc: "2.0", method, params, id }), signal, id);
    if (waiting.push(entry) === 1) {
      soon(flush);
    }
    return entry.promise;
  }

  function flush() {
    const entries = waiting.filter((entry) => !entry.isSettled);
    waiting = [];
    for (let first = 0; first < entries.length; first += maxBatch) {
      const batch = entries.slice(first, first + maxBatch);
      const texts = batch.map((entry) => entry.text);
      const body = batch.length === 1 ? texts[0] : `[${texts.join(",")}]`;
      exchange(batch, body, (answer) => settle(batch, answer));
    }
  }

  function sendAlone(envelope, { signal } = {}) {
    const entry = pending(JSON.stringify(envelope), signal);
    if (!entry.isSettled) {
      exchange([entry], entry.text, ({ ok, statusCode, content, isJson }) => {
        if (content?.jsonrpc && content.error) throw errorOf(content.error); // it takes the legacy form no more
        if (!ok) throw refusal(statusCode, content);
        if (!isJson) throw new TransportError("the server's answer is no JSON", { statusCode });
        entry.resolve(content);
      });
    }
    return entry.promise;
  }

  /** Send what belongs to these calls, and give the answer to `read`; whatever goes wrong is told to all of them. */
  async function exchange(entries, body, read) {
    const controller = new AbortController();
    const fail = (error) => entries.forEach((entry) => entry.reject(error));
    const giveUp = () => {
      fail(new TransportError(`there was no answer within ${timeout} ms`));
      controller.abort();
    };
    const timer = timeout === undefined ? undefined : setTimeout(giveUp, timeout);
    // Nobody waits for it any more: let go of the connection.
    const left = () => entries.every((entry) => entry.isSettled) && controller.abort();
    entries.forEach((entry) => (entry.onabort = left));
    try {
      read(await answerTo(body, controller.signal));
    } catch (error) {
      const isTold = error instanceof RpcError || error instanceof TransportError;
      fail(isTold ? error : new TransportError("the server could not be reached", { cause: error }));
    } finally {
      clearTimeout(timer);
    }
  }

  async function answerTo(body, signal) {
    const given = new Headers(typeof headers === "function" ? await headers() : headers);
    given.set("content-type", "application/json");
    if (!given.has("accept")) given.set("accept", "application/json");
    const response = await fetch(url, { method: "POST", headers: given, body, signal });
    const text = await response.text();
    const answer = { ok: response.ok, statusCode: response.status, content: undefined, isJson: true };
    try {
      answer.content = text === "" ? undefined : JSON.parse(text);
    } catch {
      answer.isJson = false;
    }
    return answer;
  }

  return Object.freeze({ call, notify });
}

/** A promise that is settled once, by its answer or by its signal. */
function pending(text, signal, id) {
  const entry = { text, id, isSettled: false, onabort: () => {} };
  entry.promise = new Promise((resolve, reject) => {
    const once = (settle) => (value) => {
      if (entry.isSettled) return;
      entry.isSettled = true;
      signal?.removeEventListener("abort", abort);
      settle(value);
    };
    const abort = () => {
      entry.reject(signal.reason ?? new DOMException("the call was aborted", "AbortError"));
      entry.onabort();
    };
    entry.resolve = once(resolve);
    entry.reject = once(reject);
    signal?.addEventListener("abort", abort);
    if (signal?.aborted) abort();
  });
  return entry;
}

/** Give each call of a request its own answer, in whatever order they are. */
function settle(entries, { ok, statusCode, content, isJson }) {
  const answers = (Array.isArray(content) ? content : [content]).filter((answer) => answer?.jsonrpc === "2.0");
  if (answers.length === 0 && !ok) {
    throw refusal(statusCode, content);
  }
  const byId = new Map(answers.map((answer) => [answer.id, answer]));
  const ofAll = byId.get(null)?.error; // it could not tell which one was wrong
  for (const entry of entries) {
    const answer = byId.get(entry.id);
    if (answer?.error) {
      entry.reject(errorOf(answer.error));
    } else if (answer && "result" in answer) {
      entry.resolve(answer.result);
    } else if (ofAll) {
      entry.reject(errorOf(ofAll));
    } else if (entry.id === undefined) {
      entry.resolve(undefined); // of a notification there is nothing to tell
    } else {
      const why = isJson ? "the server's answer leaves this call out" : "the server's answer is no JSON";
      entry.reject(new TransportError(why, { statusCode }));
    }
  }
}

function errorOf({ code, message, data }) {
  const status = typeof data === "object" && data !== null && "statusCode" in data ? data : undefined;
  return new RpcError(status?.description ?? message, { code, data, status });
}

/** What a server says that answers the whole request with an HTTP status: a status object, or a problem (RFC 9457). */
function refusal(statusCode, content) {
  if (typeof content !== "object" || content === null) {
    return new TransportError(`the server answered ${statusCode}`, { statusCode });
  }
  const { code, message, title, description, detail, severity = "ERROR" } = content;
  const status = { statusCode, code, message: message ?? title, description: description ?? detail, severity };
  const codes = { 400: INVALID_PARAMS, 500: INTERNAL_ERROR };
  return new RpcError(status.description ?? status.message ?? `the server answered ${statusCode}`, {
    code: codes[statusCode] ?? OWN_CODES - statusCode,
    data: content,
    status,
  });
}

/** Run it after this turn of the event loop; unlike a timer, a channel is not slowed in pages that nobody looks at. */
function soon(run) {
  if (typeof MessageChannel !== "function") {
    setTimeout(run, 0);
    return;
  }
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    port1.close();
    run();
  };
  port2.postMessage(null);
}
