// A page that uses the client: the steps that it takes come as JSON on stdin, what it was told goes to stdout.
import { readFileSync } from "node:fs";

import { createClient } from "../../clients/rpc/rpc.js";

const given = JSON.parse(readFileSync(0, "utf8"));

async function take({ calls = [], notifications = [], jsonrpc, key = given.key }) {
  let requests = 0;
  const counted = (...request) => {
    requests += 1;
    return fetch(...request);
  };
  const headers = key === null ? {} : { authorization: `Bearer ${key}` };
  const client = createClient({ url: given.url, headers, jsonrpc, fetch: counted });
  const settled = await Promise.allSettled([
    ...calls.map(({ method, params }) => client.call(method, params)),
    ...notifications.map(({ method, params }) => client.notify(method, params)),
  ]);
  return { requests, told: settled.map(({ reason, value }) => (reason ? failure(reason) : { value })) };
}

function failure({ name, message, code, status }) {
  return { name, message, code, status };
}

const taken = [];
for (const step of given.steps) taken.push(await take(step));
console.log(JSON.stringify(taken));
