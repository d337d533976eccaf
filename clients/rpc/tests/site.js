// A server of these tests: it keeps what it was asked, and answers as a test says, else as a JSON-RPC server does.
import { once } from "node:events";
import { createServer } from "node:http";

/** Start one; `site.answer` may be set to a function of the parsed body that gives `{ status, body }`. */
export async function serve() {
  const site = { asked: [], answer: rightly, arrived: undefined };
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = JSON.parse(Buffer.concat(parts).toString());
    site.asked.push({ headers: request.headers, body });
    request.socket.once("close", () => site.hungUp?.());
    site.arrived?.();
    const { status = 200, body: answer } = await site.answer(body);
    const text = answer === undefined || typeof answer === "string" ? answer : JSON.stringify(answer);
    response.writeHead(status, { "content-type": "application/json" }).end(text);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  site.url = `http://127.0.0.1:${server.address().port}/rpc`;
  site.close = () => {
    server.closeAllConnections();
    server.close();
  };
  /** Resolves when somebody has asked. */
  site.isAsked = () => new Promise((resolve) => (site.arrived = resolve));
  /** Resolves when somebody has hung up. */
  site.isLeft = () => new Promise((resolve) => (site.hungUp = resolve));
  return site;
}

const FAILED = { statusCode: 409, code: "conflict", message: "Conflict", description: "taken", severity: "ERROR" };

/** What a JSON-RPC server answers: the params, or for the method `fail` an error. */
export function rightly(body) {
  const answers = [body]
    .flat()
    .filter((request) => request.id !== undefined)
    .map(answerTo);
  return answers.length === 0 ? { status: 204 } : { body: Array.isArray(body) ? answers : answers[0] };
}

export function answerTo({ id, method, params }) {
  return method === "fail"
    ? { jsonrpc: "2.0", id, error: { code: -31409, message: "Conflict", data: FAILED } }
    : { jsonrpc: "2.0", id, result: params ?? null };
}
