// A browser, as far as chat-session.js needs one: what it does comes as JSON on stdin, what happened goes to stdout.
import { readFileSync } from "node:fs";

const { base, root, key, resolutions, ids, devices } = JSON.parse(readFileSync(0, "utf8"));

const source = await (await fetch(`${root}/static/chat-session.js`)).text();
const module = await import(`data:text/javascript,${encodeURIComponent(source)}`);

/** Keeps its items as localStorage does; `refuses` names the methods that throw, as they do in private mode. */
class FakeStorage {
  constructor(items, refuses) {
    this.items = { ...items };
    for (const method of refuses) {
      this[method] = () => {
        throw new Error(`${method} is refused`);
      };
    }
  }
  getItem(name) {
    return Object.hasOwn(this.items, name) ? this.items[name] : null;
  }
  setItem(name, value) {
    this.items[name] = String(value);
  }
  removeItem(name) {
    delete this.items[name];
  }
}

/** All devices have heard which session is active before any of them goes on. */
let unheard = devices.length;
let allHeard;
const heard = new Promise((resolve) => (allHeard = resolve));

async function withKey(url, request = {}) {
  const response = await fetch(url, { ...request, headers: { ...request.headers, authorization: `Bearer ${key}` } });
  if (!request.method) {
    unheard -= 1;
    if (unheard === 0) allHeard();
    await heard;
  }
  return response;
}

async function start({ storage, refuses, given, userId, agentName }) {
  const store = storage ? new FakeStorage(storage, refuses) : undefined;
  const get = () => {
    if (given || refuses.includes("localStorage")) throw new Error("localStorage is refused");
    return store;
  };
  Object.defineProperty(globalThis, "localStorage", { get, configurable: true });
  const options = { userId, agentName, baseUrl: base, fetch: withKey, ...(given && { storage: store ?? null }) };
  try {
    return { sessionId: await module.initializeSessionAsync(options), storage: store?.items ?? null, error: null };
  } catch (error) {
    return { sessionId: null, storage: store?.items ?? null, error: `${error.name}: ${error.message}` };
  }
}

const started = await Promise.all(devices.map(start));
const made = Array.from({ length: ids }, module.generateNewSessionId);
Object.defineProperty(crypto, "randomUUID", { value: undefined });
const madeInsecurely = Array.from({ length: ids }, module.generateNewSessionId);
const resolved = resolutions.map(([stored, active]) => module.resolveSession(stored, active, () => "new"));
console.log(JSON.stringify({ started, made, madeInsecurely, resolved }));
