/* What the page asks the server, and the one shape of errors. */

const KEY = "leadline-token";
let token = null;

try { token = sessionStorage.getItem(KEY); } catch { /* forbidden: the token lasts as long as the page */ }

/** An error as the server tells it, or one that says that there was no answer. */
export class Problem extends Error {
  constructor(status, code, message, hint = "") {
    super(message);
    Object.assign(this, { status, code, hint });
  }
}

export const hasToken = () => token !== null;

/** Takes a token for all that is asked from now on; null forgets it. */
export function useToken(value) {
  token = value;
  try {
    if (value === null) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, value);
  } catch { /* see above */ }
}

/** The response, which is a good one. Raises Problem. `signal` may give the request up. */
export async function request(path, { method = "GET", json, body, signal } = {}) {
  const headers = {};
  if (token !== null) headers.Authorization = `Bearer ${token}`;
  if (json !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(`.${path}`, { method, headers, body: json === undefined ? body : JSON.stringify(json), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw unreachable();
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

const unreachable = () => new Problem(0, "unreachable", "The server can't be reached.", "See if it is still running, then try again.");

/** The JSON of an answer. Raises Problem. */
export const call = async (path, options) => (await request(path, options)).json();

/** Sends a form; `sent` is told which part of it is out, from 0 to 1. The JSON of the answer. Raises Problem, or
    AbortError where `signal` gave it up. (`fetch` doesn't tell how far it is.) */
export function send(path, form, { sent, signal }) {
  const sending = new XMLHttpRequest();
  const answered = new Promise((resolve, reject) => {
    sending.addEventListener("load", () => resolve(new Response(sending.response, { status: sending.status })));
    sending.addEventListener("error", () => reject(unreachable()));
    sending.addEventListener("abort", () => reject(new DOMException("given up", "AbortError")));
  });
  sending.upload.addEventListener("progress", ({ loaded, total }) => { if (total) sent(loaded / total); });
  signal.addEventListener("abort", () => sending.abort());
  sending.open("POST", `.${path}`);
  sending.responseType = "blob";
  if (token !== null) sending.setRequestHeader("Authorization", `Bearer ${token}`);
  sending.send(form);
  return answered.then(async (response) => {
    if (!response.ok) throw await problemOf(response);
    return response.json();
  });
}

async function problemOf(response) {
  let told = {};
  try { told = (await response.json()).error ?? {}; } catch { /* a proxy's page, say */ }
  const problem = new Problem(
    response.status,
    told.code ?? `http_${response.status}`,
    told.message ?? `The server answered with status ${response.status}.`,
    told.hint ?? "",
  );
  if (response.status === 401) document.dispatchEvent(new CustomEvent("token-refused", { detail: problem }));
  return problem;
}

/** `?name=value` of what is given. */
export const query = (values) => `?${new URLSearchParams(values)}`;

/** The events of a stream, as they come. Ends where the stream ends, raises what cuts it off. */
export async function* events(response) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let held = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      held += decoder.decode(value, { stream: true });
      const frames = held.split(/\r?\n\r?\n/);
      held = frames.pop();
      for (const frame of frames) {
        const data = frame.split(/\r?\n/).filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart());
        if (data.length) yield JSON.parse(data.join("\n"));
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // where whoever reads has stopped: the run ends on the server too
  }
}
