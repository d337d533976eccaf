/**
 * Finds the session that a user is in with an agent: the one this browser has stored if it is still the active one,
 * else the one that is active on another device, else a new one. Devices that start at once agree on one.
 *
 *     import { initializeSessionAsync } from "/static/chat-session.js";
 *     const sessionId = await initializeSessionAsync({ userId: "ann", agentName: "support" });
 *
 * @module chat-session
 */

/**
 * What of `localStorage` is used.
 * @typedef {Pick<Storage, "getItem" | "setItem" | "removeItem">} SessionStorage
 */

/**
 * @typedef {object} SessionOptions
 * @property {string} userId Who is signed in. Only the name of the stored id has it: the server knows who calls.
 * @property {string} agentName The agent to talk to.
 * @property {string} [baseUrl] Where the server is, if it is not where the page comes from.
 * @property {typeof globalThis.fetch} [fetch] Replaces the browser's, to add a key for instance.
 * @property {SessionStorage | null} [storage] Replaces `localStorage`; null: nothing is stored in this browser.
 */

/**
 * @typedef {object} Resolution
 * @property {string} sessionId
 * @property {boolean} forgetStored
 * @property {boolean} storeLocally
 * @property {boolean} activate
 */

/**
 * A new UUID of version 4.
 * @returns {string}
 */
export function generateNewSessionId() {
  if (typeof crypto.randomUUID === "function") {
    return crypto.randomUUID();
  }
  // Browsers have it only for pages that came over TLS or from the same machine.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/**
 * The stored id if it is still the active one, else the active one, else a new one.
 * @param {string | null} stored
 * @param {string | null} active
 * @param {() => string} generate
 * @returns {Resolution}
 */
export function resolveSession(stored, active, generate) {
  const isStored = stored !== null && stored === active;
  return {
    sessionId: active === null ? generate() : active,
    forgetStored: stored !== null && !isStored,
    storeLocally: !isStored,
    activate: active === null,
  };
}

/**
 * The session to go on with. Rejects if the server cannot be asked; what is stored stays as it was then.
 * @param {SessionOptions} options
 * @returns {Promise<string>}
 */
export async function initializeSessionAsync({ userId, agentName, baseUrl = "", fetch = globalThis.fetch, storage }) {
  const store = storage === undefined ? localStorageOrNull() : storage;
  const key = `chatSession_${userId}_${agentName}`;
  const url = `${baseUrl}/api/sessions/active?agent_id=${encodeURIComponent(agentName)}`;

  const stored = attempt(() => store?.getItem(key)) ?? null;
  const active = await ask(fetch, url);
  const found = resolveSession(stored, active, generateNewSessionId);
  let sessionId = found.sessionId;
  if (found.activate) {
    // Another device may have been faster since: then that one's session is the answer.
    const body = JSON.stringify({ session_id: sessionId, instead_of: null });
    const headers = { "content-type": "application/json" };
    sessionId = (await ask(fetch, url, { method: "PUT", headers, body })) ?? sessionId;
  }

  if (found.forgetStored) {
    attempt(() => store?.removeItem(key)); // apart from storing: a full storage still forgets
  }
  if (found.storeLocally) {
    attempt(() => store?.setItem(key, sessionId));
  }
  return sessionId;
}

/**
 * @param {typeof globalThis.fetch} fetch
 * @param {string} url
 * @param {RequestInit} [request]
 * @returns {Promise<string | null>}
 */
async function ask(fetch, url, request) {
  const failed = "could not look up the active session";
  let response, answer;
  try {
    response = await fetch(url, request);
    answer = await response.json();
  } catch (cause) {
    const why = response ? `the server's answer (${response.status}) is no JSON` : "the server cannot be reached";
    throw new Error(`${failed}: ${why}`, { cause });
  }
  if (!response.ok) {
    throw new Error(`${failed}: ${answer?.detail ?? `the server answered ${response.status}`}`);
  }
  if (answer?.session_id !== null && typeof answer?.session_id !== "string") {
    throw new Error(`${failed}: the server's answer has no session_id`);
  }
  return answer.session_id;
}

/**
 * @returns {SessionStorage | null}
 */
function localStorageOrNull() {
  return attempt(() => globalThis.localStorage) ?? null;
}

/**
 * The value, or undefined: a browser in private mode may refuse any use of its storage, even to look at it.
 * @template T
 * @param {() => T} use
 * @returns {T | undefined}
 */
function attempt(use) {
  try {
    return use();
  } catch {
    return undefined;
  }
}
