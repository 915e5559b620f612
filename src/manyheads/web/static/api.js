// Ask the server; an older question of the same asker is given up.

import { t } from "./words.js";

let token = "";
let askToken = null;

/** What is called when the server wants a token: it gives a promise of one. */
export function onToken(ask) {
  askToken = ask;
}

export class Problem extends Error {
  constructor({ detail, title, remedy, status }) {
    super(detail || title);
    this.remedy = remedy;
    this.status = status;
  }
}

const missed = new Map(); // modules that did not come: a browser remembers, so the next try has another address

/** Import a module by its address. */
export async function load(address) {
  const tries = missed.get(address);
  try {
    return await import(tries ? `${address}?${tries}` : address);
  } catch {
    missed.set(address, (tries ?? 0) + 1);
    throw new Problem({ title: t().gone, status: 0 });
  }
}

/** Ask with the token, if there is one; a busy server is asked again after a while. */
async function request(path, { headers = {}, signal, ...options } = {}) {
  for (let tries = 0; ; tries++) {
    const sent = token ? { ...headers, Authorization: `Bearer ${token}` } : headers;
    const response = await reach(path, { headers: sent, signal, ...options });
    if (response.ok) return response;
    await refused(response, tries, signal);
  }
}

/** Post JSON and read JSON. */
export async function post(path, content, { signal, raw = false } = {}) {
  const headers = { "Content-Type": "application/json" };
  const response = await request(path, { method: "POST", headers, body: JSON.stringify(content), signal });
  return raw ? response.blob() : response.json();
}

export const get = async (path) => (await request(path)).json();

/** Send a file, and give the lines of JSON that come back while the server works. */
export async function* stream(path, file, signal) {
  const headers = { "Content-Type": "application/octet-stream" };
  const response = await request(path, { method: "POST", headers, body: file, signal });
  const text = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await text.read();
    const lines = (rest + (value ?? "")).split("\n");
    rest = done ? "" : lines.pop();
    for (const line of lines.filter(Boolean)) yield JSON.parse(line);
    if (done) return;
  }
}

/** Fetch; a server that is gone is said in words. */
async function reach(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({ title: t().gone, status: 0 });
  }
}

/** Wait for what helps, a moment or a token; or raise what the server says. */
async function refused(response, tries, signal) {
  if (response.status === 401 && askToken) {
    token = await askToken();
    return;
  }
  const after = Number(response.headers.get("Retry-After"));
  if (response.status === 429 && tries < 3) {
    await new Promise((done) => setTimeout(done, 1000 * Math.min(after || 1, 5)));
    signal?.throwIfAborted();
    return;
  }
  const told = await response.json().catch(() => ({ title: response.statusText }));
  if (response.status === 413) Object.assign(told, { detail: t().tooLong, remedy: "" });
  throw new Problem({ status: response.status, ...told });
}

/**
 * One asker: a new question gives up the one before. `work` gets a signal; what it returns is passed to
 * `done`, and errors to `failed`, unless a newer question was asked meanwhile.
 */
export function makeAsker({ begin, done, failed }) {
  let last = null;
  const asker = {
    async ask(work) {
      last?.abort();
      const mine = new AbortController();
      last = mine;
      begin();
      try {
        const found = await work(mine.signal);
        if (last === mine) await done(found);
      } catch (error) {
        if (last === mine && error.name !== "AbortError") failed(error);
      }
    },
    stop() {
      last?.abort();
      last = null;
    },
  };
  return asker;
}
