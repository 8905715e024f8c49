/* The middle of the page: the questions of one conversation, the composer, and the run that is on. */

import { call, events, Problem, request } from "./api.js";
import { $, announce, h } from "./dom.js";
import { closeSide } from "./drawers.js";
import { documentCount } from "./documents.js";
import { showEvidence } from "./evidence.js";
import { showSource } from "./source.js";
import { mayWrite, newId, state, toAddress } from "./state.js";
import { loadThreads, markThread } from "./threads.js";
import { Turn } from "./turn.js";

const NEAR = 120; // pixels from the end within which the page follows the answer
const does = { showSource, showEvidence: (result) => showEvidence(result, showSource), askAgain: (question, consent) => ask(question, consent) };
let running = null; // what stops the run that is on
let following = true;

/** Asks, and shows what comes. `consent`: "yes" lets this question go to the web. */
async function ask(question, consent = null) {
  if (running) return;
  state.thread ??= newId();
  const thread = state.thread;
  toAddress();
  const controller = begin(new AbortController());
  const model = $("llm").value || state.about.llm;
  const turn = show(new Turn(question, does, { quoted: !model }));
  turn.begin();
  toEnd(true);
  let problem = new Problem(0, "cut", "The connection to the server was lost.", "Ask again: the question is kept here.");
  try {
    const response = await request("/chat", { method: "POST", json: asked(question, thread, consent), signal: controller.signal });
    for await (const event of events(response)) {
      turn.take(event);
      toEnd();
    }
  } catch (error) {
    if (error.name === "AbortError") problem = null;
    else if (error instanceof Problem) problem = error;
  }
  if (!turn.ended) turn.broke(problem);
  end(controller);
  toEnd();
  if (state.thread === thread) await loadThreads();
}

function asked(question, thread, consent) {
  const web = $("web").disabled ? null : $("web").value;
  const named = { collection: state.collection, web, llm: $("llm").value || null, web_consent: consent };
  const given = Object.entries(named).filter(([, value]) => value !== null);
  return { question, thread_id: thread, stream: true, ...Object.fromEntries(given) };
}

function begin(controller) {
  running = controller;
  following = true;
  $("send").textContent = "Stop";
  measure();
  $("turns").dataset.running = "true";
  return controller;
}

function end(controller) {
  if (running !== controller) return;
  running = null;
  $("send").textContent = "Ask";
  measure();
  delete $("turns").dataset.running;
}

function show(turn) {
  $("empty").hidden = true;
  $("turns").append(turn.element);
  return turn;
}

function toEnd(always = false) {
  if (always || following) $("scroll").scrollTop = $("scroll").scrollHeight;
}

/** Leaves the conversation for none. What runs is given up. */
export function leaveThread() {
  running?.abort();
  state.thread = null;
  toAddress();
  $("turns").replaceChildren();
  greet();
  markThread();
}

/** Begins a new conversation, ready for its first question. */
export function newThread() {
  leaveThread();
  closeSide();
  $("question").focus();
}

/** Shows a stored conversation; where it isn't there, a new one. */
export async function openThread(id) {
  if (running && state.thread === id) return;
  running?.abort();
  state.thread = id;
  toAddress();
  markThread();
  closeSide();
  $("turns").replaceChildren();
  $("empty").hidden = true;
  try {
    const thread = await call(`/threads/${encodeURIComponent(id)}`);
    if (state.thread !== id || running) return;
    recall(thread);
  } catch (problem) {
    if (state.thread !== id || running) return;
    if (problem.status === 404) { leaveThread(); return; }
    $("turns").replaceChildren(h("p", { class: "problem" }, problem.message));
  }
}

function recall({ messages, result }) {
  let turn = null;
  const quoted = !state.about.llm;
  messages.forEach(({ role, text }, at) => {
    const last = at === messages.length - 1;
    if (role === "user") {
      turn = show(new Turn(text, does, { quoted }));
      if (last) turn.recall("", null);
    } else {
      turn ??= show(new Turn("", does, { quoted }));
      turn.recall(text, last ? result : null);
    }
  });
  toEnd(true);
}

/** What stands there before the first question. */
export function greet() {
  const empty = $("empty");
  empty.hidden = $("turns").childElementCount > 0;
  if (empty.hidden) return;
  const some = documentCount() > 0;
  const add = h("button", { type: "button", class: "primary", click: () => $("files").click() }, "Add documents");
  empty.replaceChildren(
    h("p", { class: "big" }, some ? "Ask about your documents" : "There are no documents here yet"),
    h("p", { class: "muted" }, some
      ? "Every sentence of an answer names the passage it is from. Where the documents hold no answer, you are told so."
      : "Add some, or drop them anywhere on this page: PDF, Word, Markdown, HTML, CSV, text."),
    some || !mayWrite() ? "" : add);
}

/** A question longer than the server takes stays whole in the box, is said to be, and can't be asked. */
function measure() {
  const most = state.about?.limits.max_question_chars ?? Infinity;
  const over = length($("question").value.trim()) - most;
  const note = $("too-long");
  const before = note.hidden;
  note.hidden = over <= 0;
  $("question").setAttribute("aria-invalid", String(over > 0));
  $("send").disabled = over > 0 && !running;
  note.textContent = "";
  if (over <= 0) return true;
  note.textContent = `Too long to ask: ${number(most + over)} characters, ${number(most)} at most. Shorten it by ${number(over)}.`;
  if (before) announce(note.textContent);
  return false;
}

// As the server counts them: a sign beyond the first plane is one, where JavaScript has two.
const length = (text) => { let many = 0; for (const _ of text) many += 1; return many; };
const number = (value) => value.toLocaleString("en");

/** The composer, and following the answer as it grows. */
export function startConversation() {
  const box = $("question");
  const fit = () => {
    box.style.height = "auto";
    box.style.height = `${box.scrollHeight + 2}px`;
  };
  box.addEventListener("input", () => { fit(); measure(); });
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return; // a word is being composed: its Enter
    event.preventDefault();
    if (!running && measure()) $("composer").requestSubmit();
  });
  $("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    if (running) { running.abort(); return; }
    const question = box.value.trim();
    if (!question || !measure()) { box.focus(); return; }
    box.value = "";
    fit();
    ask(question);
  });
  let before = 0;
  $("scroll").addEventListener("scroll", () => {
    const { scrollHeight, scrollTop, clientHeight } = $("scroll");
    // Only who goes up leaves the end: the event comes late, and what has grown since is not the reader's doing.
    if (scrollHeight - scrollTop - clientHeight < NEAR) following = true;
    else if (scrollTop < before) following = false;
    before = scrollTop;
  }, { passive: true });
  $("turns").addEventListener("grown", () => toEnd());
  $("new-thread").addEventListener("click", newThread);
}
