import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";

import { createClient, RpcError, TransportError } from "@holdfast/rpc";

import { answerTo, rightly, serve } from "./site.js";

const ORDER = {
  host: "lightapi.net",
  service: "market",
  action: "createOrder",
  version: "0.1.0",
  title: "Create an order",
  success: "/app/success",
  failure: "/app/failure",
  data: { item: "tea", title: "of the order" },
};

let site;
before(async () => (site = await serve()));
after(() => site.close());
beforeEach(() => {
  site.asked = [];
  site.answer = rightly;
});

const clientOf = (options) => createClient({ url: site.url, jsonrpc: true, ...options });
const bodies = () => site.asked.map(({ body }) => body);
const never = () => new Promise(() => {});

test("a call alone is a request alone", async () => {
  const result = await clientOf().call("lightapi.net/market/createOrder/0.1.0", { item: "tea" });

  assert.deepEqual(result, { item: "tea" });
  const request = { jsonrpc: "2.0", method: "lightapi.net/market/createOrder/0.1.0", params: { item: "tea" }, id: 1 };
  assert.deepEqual(bodies(), [request]);
  assert.equal(site.asked[0].headers["content-type"], "application/json");
});

test("ten calls in one tick are one HTTP request, also if some come from promises that were ready", async () => {
  const client = clientOf();
  const call = async (n) => {
    if (n % 2) await null;
    if (n % 3) await Promise.all([null]);
    return client.call("echo", [n]);
  };

  const results = await Promise.all(Array.from({ length: 10 }, (_, n) => call(n)));

  assert.deepEqual(
    results,
    Array.from({ length: 10 }, (_, n) => [n]),
  );
  assert.equal(site.asked.length, 1);
  assert.equal(new Set(bodies()[0].map(({ id }) => id)).size, 10);
});

test("calls of another tick are another request, with ids of their own", async () => {
  const client = clientOf();

  await Promise.all([client.call("echo"), client.call("echo")]);
  await Promise.all([client.call("echo"), client.call("echo")]);

  const ids = bodies().map((batch) => batch.map(({ id }) => id));
  assert.deepEqual(ids, [
    [1, 2],
    [3, 4],
  ]);
});

test("more calls than a request may have are several requests", async () => {
  const client = clientOf({ maxBatch: 4 });

  const results = await Promise.all(Array.from({ length: 9 }, (_, n) => client.call("echo", [n])));

  assert.deepEqual(results.flat(), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  assert.deepEqual(
    bodies()
      .map((body) => [body].flat().length)
      .sort(),
    [1, 4, 4],
  );
});

test("by default a request has at most fifty calls", async () => {
  const client = clientOf();

  await Promise.all(Array.from({ length: 51 }, () => client.call("echo")));

  assert.deepEqual(
    bodies()
      .map((body) => [body].flat().length)
      .sort(),
    [1, 50],
  );
});

test("a limit that is none is refused at once", () => {
  assert.throws(() => clientOf({ maxBatch: 0 }), RangeError);
});

test("one failed call rejects only its own promise, and says what the server said", async () => {
  const client = clientOf();

  const [first, failed, last] = await Promise.allSettled([
    client.call("echo", [1]),
    client.call("fail"),
    client.call("echo", [2]),
  ]);

  assert.deepEqual([first.value, last.value], [[1], [2]]);
  assert.ok(failed.reason instanceof RpcError);
  const { name, code, message, status, data } = failed.reason;
  assert.deepEqual(
    [name, code, message, status.code, status.statusCode],
    ["RpcError", -31409, "taken", "conflict", 409],
  );
  assert.equal(data, status);
});

test("answers may come in any order, and beside them some that nobody asked for", async () => {
  site.answer = (batch) => ({
    body: [{ jsonrpc: "2.0", id: 99, result: "?" }, ...batch.map(answerTo).reverse(), null],
  });
  const client = clientOf();

  const results = await Promise.all([client.call("echo", ["a"]), client.call("echo", ["b"])]);

  assert.deepEqual(results, [["a"], ["b"]]);
});

test("a call that the answer leaves out is rejected, the others are not", async () => {
  site.answer = (batch) => ({ body: batch.slice(1).map(answerTo) });
  const client = clientOf();

  const [lost, found] = await Promise.allSettled([client.call("echo"), client.call("echo", [2])]);

  assert.ok(lost.reason instanceof TransportError);
  assert.match(lost.reason.message, /leaves this call out/);
  assert.deepEqual(found.value, [2]);
});

test("an error that has no id is the answer to every call that has no other", async () => {
  const error = { code: -32600, message: "too many" };
  site.answer = () => ({ body: { jsonrpc: "2.0", id: null, error } });
  const client = clientOf();

  const told = await Promise.allSettled([client.call("echo"), client.call("echo"), client.notify("echo")]);

  assert.deepEqual(
    told.map(({ reason }) => [reason.name, reason.code, reason.status]),
    Array(3).fill(["RpcError", -32600, undefined]),
  );
});

test("a refusal of the whole request rejects all of its calls with what the server says", async () => {
  const problem = {
    type: "about:blank",
    title: "Unauthenticated",
    status: 401,
    detail: "a key is needed",
    code: "unauthenticated",
  };
  site.answer = () => ({ status: 401, body: problem });
  const client = clientOf();

  const told = await Promise.allSettled([client.call("echo"), client.call("echo")]);

  for (const { reason } of told) {
    assert.ok(reason instanceof RpcError);
    assert.deepEqual([reason.code, reason.message, reason.status.code], [-31401, "a key is needed", "unauthenticated"]);
    assert.deepEqual(reason.data, problem);
  }
});

for (const [what, answer, statusCode, words] of [
  ["an error page", { status: 502, body: "<h1>Bad gateway</h1>" }, 502, /answered 502/],
  ["a page", { body: "<h1>Sign in</h1>" }, 200, /no JSON/],
  ["something else", { body: { result: 1 } }, 200, /leaves this call out/],
  ["nothing", { status: 204 }, 204, /leaves this call out/],
]) {
  test(`${what} is no answer to any call of the request`, async () => {
    site.answer = () => answer;
    const client = clientOf();

    const told = await Promise.allSettled([client.call("echo"), client.call("echo")]);

    for (const { reason } of told) {
      assert.ok(reason instanceof TransportError);
      assert.equal(reason.statusCode, statusCode);
      assert.match(reason.message, words);
    }
  });
}

test("a server that cannot be reached rejects all calls of the request, and no others", async () => {
  let isDown = true;
  const client = clientOf({
    fetch: (...request) => (isDown ? Promise.reject(new TypeError("refused")) : fetch(...request)),
  });

  const told = await Promise.allSettled([client.call("echo"), client.call("echo")]);
  isDown = false;
  const later = await client.call("echo", [3]);

  assert.deepEqual(
    told.map(({ reason }) => [reason.name, reason.cause.message]),
    Array(2).fill(["TransportError", "refused"]),
  );
  assert.deepEqual(later, [3]);
});

test("a request that is not answered in time is given up", async () => {
  site.answer = never;
  const left = site.isLeft();

  const told = await Promise.allSettled([clientOf({ timeout: 50 }).call("echo")]);
  await left;

  assert.ok(told[0].reason instanceof TransportError);
  assert.match(told[0].reason.message, /within 50 ms/);
});

test("a notification has no id, goes with the others, and is settled when the server has it", async () => {
  const client = clientOf();

  const told = await Promise.all([client.notify("seen", { id: 7 }), client.call("echo", [1]), client.notify("seen")]);

  assert.deepEqual(told, [undefined, [1], undefined]);
  assert.deepEqual(
    bodies()[0].map((request) => "id" in request),
    [false, true, false],
  );
});

test("a notification alone is answered by nothing", async () => {
  assert.equal(await clientOf().notify("seen"), undefined);
});

test("a notification that nobody waits for breaks nothing when it fails", async () => {
  const client = clientOf({ fetch: () => Promise.reject(new TypeError("refused")) });

  client.notify("seen");
  const told = await Promise.allSettled([client.notify("seen")]);

  assert.equal(told[0].reason.name, "TransportError");
});

test("a call that is aborted before it is sent is not sent", async () => {
  const client = clientOf();
  const controller = new AbortController();
  const aborted = client.call("echo", [1], { signal: controller.signal });
  const other = client.call("echo", [2]);

  controller.abort();
  const told = await Promise.allSettled([aborted, other, client.call("echo", [3], { signal: AbortSignal.abort() })]);

  assert.deepEqual(
    told.map(({ reason, value }) => reason?.name ?? value),
    ["AbortError", [2], "AbortError"],
  );
  assert.deepEqual(
    bodies().map(({ params }) => params),
    [[2]],
  );
});

test("a call that is aborted while it is under way ends alone, and the others go on", async () => {
  let release;
  const released = new Promise((resolve) => (release = resolve));
  site.answer = async (batch) => (await released, rightly(batch));
  const client = clientOf();
  const controller = new AbortController();
  const asked = site.isAsked();
  const aborted = client.call("echo", [1], { signal: controller.signal });
  const other = client.call("echo", [2]);
  await asked;

  controller.abort(new Error("changed my mind"));
  await assert.rejects(aborted, /changed my mind/);
  release();

  assert.deepEqual(await other, [2]);
});

test("a request for which nobody waits any more is hung up", async () => {
  site.answer = never;
  const controller = new AbortController();
  const [asked, left] = [site.isAsked(), site.isLeft()];
  const client = clientOf();
  const calls = [1, 2].map((n) => client.call("echo", [n], { signal: controller.signal }));
  await asked;

  controller.abort();
  const told = await Promise.allSettled(calls);

  assert.deepEqual(
    told.map(({ reason }) => reason.name),
    ["AbortError", "AbortError"],
  );
  await left;
});

test("params are sent as they were when the call was made, and those that cannot be written fail alone", async () => {
  const client = clientOf();
  const params = { n: 1 };

  const call = client.call("echo", params);
  params.n = 2;
  const told = await Promise.allSettled([call, client.call("echo", { n: 1n }), client.call(""), client.call()]);

  assert.deepEqual(
    told.map(({ reason, value }) => reason?.name ?? value),
    [{ n: 1 }, "TypeError", "TypeError", "TypeError"],
  );
});

test("headers are asked for with every request, and may take time", async () => {
  let token = 0;
  const client = clientOf({ headers: async () => ({ Authorization: `Bearer ${++token}` }) });

  await client.call("echo");
  await client.call("echo");

  assert.deepEqual(
    site.asked.map(({ headers }) => headers.authorization),
    ["Bearer 1", "Bearer 2"],
  );
});

test("headers that cannot be had reject the calls", async () => {
  const client = clientOf({ headers: () => Promise.reject(new Error("signed out")) });

  await assert.rejects(client.call("echo"), (error) => error.cause.message === "signed out");
});

test("a call in the legacy form is JSON-RPC where that is wanted, without what is for the page", async () => {
  const client = clientOf({ jsonrpc: true });

  const [result] = await Promise.all([client.call(ORDER), client.call("echo")]);

  assert.deepEqual(result, ORDER.data);
  const [sent] = bodies()[0];
  assert.deepEqual(sent, {
    jsonrpc: "2.0",
    method: "lightapi.net/market/createOrder/0.1.0",
    params: ORDER.data,
    id: 1,
  });
});

test("a call in the legacy form is sent in that form by default, without what is for the page", async () => {
  site.answer = ({ data }) => ({ body: data });

  const result = await createClient({ url: site.url }).call(ORDER);

  assert.deepEqual(result, ORDER.data);
  const { host, service, action, version, data } = ORDER;
  assert.deepEqual(bodies(), [{ host, service, action, version, data }]);
});

test("a failure in the legacy form is the same error", async () => {
  const status = { statusCode: 409, code: "conflict", message: "Conflict", description: "taken", severity: "ERROR" };
  site.answer = () => ({ status: 409, body: status });

  const [{ reason }] = await Promise.allSettled([createClient({ url: site.url }).call(ORDER)]);

  assert.ok(reason instanceof RpcError);
  assert.deepEqual([reason.code, reason.message, reason.status, reason.data], [-31409, "taken", status, status]);
});

test("a server that takes the legacy form no more is heard", async () => {
  site.answer = () => ({ body: { jsonrpc: "2.0", id: null, error: { code: -32600, message: "send JSON-RPC" } } });

  await assert.rejects(createClient({ url: site.url }).call(ORDER), { name: "RpcError", code: -32600 });
});

for (const [what, answer, words] of [
  ["an error page", { status: 502, body: "<h1>Bad gateway</h1>" }, /answered 502/],
  ["a page", { body: "<h1>Sign in</h1>" }, /no JSON/],
]) {
  test(`${what} is no answer to a call in the legacy form`, async () => {
    site.answer = () => answer;

    await assert.rejects(createClient({ url: site.url }).call(ORDER), (error) => {
      return error instanceof TransportError && words.test(error.message);
    });
  });
}

test("a call in the legacy form may be aborted, and may give nothing", async () => {
  site.answer = () => ({ status: 204 });
  const client = createClient({ url: site.url });

  const told = await Promise.allSettled([client.call(ORDER), client.call(ORDER, { signal: AbortSignal.abort() })]);

  assert.deepEqual(
    told.map(({ reason, value }) => reason?.name ?? value),
    [undefined, "AbortError"],
  );
  assert.equal(site.asked.length, 1);
});
