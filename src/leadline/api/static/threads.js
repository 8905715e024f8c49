/* The conversations about the collection. */

import { call, query, request } from "./api.js";
import { $, announce, clean, count, h, icon, keepingFocus, trouble, when } from "./dom.js";
import { confirm } from "./dialog.js";
import { state } from "./state.js";

const FIRST = 100; // more are drawn when asked for
let all = [];
let most = FIRST;
let loading = 0;
let does; // open(id), closed()

/** `open(id)` shows a conversation, `closed()` is told that the one shown is deleted. */
export function startThreads(actions) {
  does = actions;
  $("more-threads").addEventListener("click", drawAll);
}

/** Reads the list anew. */
export async function loadThreads() {
  const mine = ++loading;
  let threads = [];
  let problem = null;
  try {
    ({ threads } = await call(`/threads${query({ collection: state.collection })}`));
  } catch (error) {
    if (error.status !== 404) problem = error;
  }
  if (mine !== loading) return;
  all = threads;
  draw();
  $("threads-note").hidden = !problem && threads.length > 0;
  $("threads-note").replaceChildren(...(problem ? trouble(problem, loadThreads) : ["None yet."]));
}

function draw() {
  keepingFocus($("threads"), () => $("threads").replaceChildren(...all.slice(0, most).map(line)));
  const rest = all.length - most;
  $("more-threads").hidden = rest <= 0;
  $("more-threads").textContent = `Show ${count(rest, "more conversation")}`;
}

function drawAll() {
  const at = most;
  most = Infinity;
  draw();
  $("threads").children[at]?.querySelector("button").focus();
}

/** Marks the one that is shown. */
export function markThread() {
  for (const each of $("threads").querySelectorAll("[data-thread]")) {
    const button = each.querySelector(".open");
    if (each.dataset.thread === state.thread) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
}

function line(thread) {
  const label = clean(thread.question) || "without a question";
  const current = thread.thread_id === state.thread ? "true" : null;
  return h("li", { "data-thread": thread.thread_id, title: label },
    h("button", { type: "button", class: "open", "aria-current": current, click: () => does.open(thread.thread_id) },
      h("span", { class: "label", dir: "auto" }, label), h("span", { class: "muted" }, when(thread.updated_at))),
    h("button", { type: "button", class: "icon small", "aria-label": `Delete the conversation “${label}”`, title: "Delete", click: () => ask(thread, label) }, icon("trash")));
}

async function ask(thread, label) {
  const done = await confirm({
    title: "Delete this conversation?",
    text: `“${label.length > 120 ? `${label.slice(0, 120)}…` : label}” and its answers are gone then.`,
    yes: "Delete",
    danger: true,
    action: () => request(`/threads/${encodeURIComponent(thread.thread_id)}`, { method: "DELETE" }),
  });
  if (!done) return;
  announce("The conversation is deleted.");
  if (thread.thread_id === state.thread) does.closed();
  await loadThreads();
  $("new-thread").focus();
}
