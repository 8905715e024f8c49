/* The middle of the page: the questions of one conversation, the composer, and the run that is on. */

import { call, events, Problem, request } from "./api.js";
import { $, announce, h, trouble } from "./dom.js";
import { closePanel, closeSide } from "./drawers.js";
import { documentCount } from "./documents.js";
import { showEvidence } from "./evidence.js";
import { hidePeek } from "./peek.js";
import { showSource } from "./source.js";
import { mayWrite, newId, state, toAddress } from "./state.js";
import { loadThreads, markThread } from "./threads.js";
import { Turn } from "./turn.js";

const NEAR = 120; // pixels from the end within which the page follows the answer
const does = { showSource, showEvidence: (result) => showEvidence(result, showSource), askAgain: (question, consent) => ask(question, consent) };
let running = null; // the run that is on: what stops it, and its conversation
let opening = null; // the stored conversation on its way
let gone = false; // whether the address named a conversation that isn't there
let following = true;

/** Asks, and shows what comes. `consent`: "yes" lets this question go to the web. */
async function ask(question, consent = null) {
  if (running) { announce("Another answer is being made. Stop it first, or wait for its end."); return; }
  state.thread ??= newId();
  const thread = state.thread;
  toAddress();
  const run = begin(thread);
  const model = $("llm").value || state.about.llm;
  const turn = show(new Turn(question, does, { quoted: !model }));
  turn.begin();
  toEnd(true);
  let problem = new Problem(0, "cut", "The connection to the server was lost.", "Ask again: the question is kept here.");
  const json = asked(question, thread, consent);
  try {
    await opening; // what was said before comes above this question, not after it
    const response = await request("/chat", { method: "POST", json, signal: run.controller.signal });
    for await (const event of events(response)) {
      turn.take(event);
      toEnd();
    }
  } catch (error) {
    if (error.name === "AbortError") problem = null;
    else if (error instanceof Problem) problem = error;
  }
  if (turn.element.isConnected) { // else one has left it
    if (!turn.ended) turn.broke(problem);
    toEnd();
  }
  end(run);
  if (state.thread === thread) await loadThreads();
}

function asked(question, thread, consent) {
  const web = $("web").disabled ? null : $("web").value;
  const named = { collection: state.collection, web, llm: $("llm").value || null, web_consent: consent };
  const given = Object.entries(named).filter(([, value]) => value !== null);
  return { question, thread_id: thread, stream: true, ...Object.fromEntries(given) };
}

function begin(thread) {
  running = { controller: new AbortController(), thread };
  following = true;
  $("send").textContent = "Stop";
  measure();
  $("turns").dataset.running = "true";
  return running;
}

function end(run) {
  if (running !== run) return;
  running = null;
  $("send").textContent = "Ask";
  measure();
  delete $("turns").dataset.running;
}

/** Gives up the run that is on: what it says still is for nobody. */
function giveUp() {
  running?.controller.abort();
  end(running);
}

/** Empties the page of a conversation, and of the sources that were open beside it. */
function clear() {
  hidePeek();
  closePanel();
  $("turns").replaceChildren();
}

function show(turn) {
  gone = false;
  $("empty").hidden = true;
  $("turns").append(turn.element);
  return turn;
}

function toEnd(always = false) {
  if (always || following) $("scroll").scrollTop = $("scroll").scrollHeight;
}

/** Leaves the conversation for none. What runs is given up. `replace`: as `toAddress` has it. */
export function leaveThread({ replace = false } = {}) {
  giveUp();
  opening = null;
  state.thread = null;
  toAddress({ replace });
  clear();
  greet();
  markThread();
}

/** Begins a new conversation, ready for its first question. */
export function newThread() {
  gone = false;
  leaveThread();
  closeSide();
  $("question").focus();
}

/** Shows a stored conversation; where it isn't there, a new one, which says so. */
export function openThread(id) {
  if (running?.thread === id) return null; // it stands there already
  giveUp();
  state.thread = id;
  toAddress();
  markThread();
  clear();
  $("empty").hidden = true;
  opening = load(id);
  return opening;
}

async function load(id) {
  try {
    const thread = await call(`/threads/${encodeURIComponent(id)}`);
    if (state.thread !== id) return;
    if (thread.collection !== state.collection) {
      state.collection = thread.collection;
      toAddress({ replace: true });
      document.dispatchEvent(new Event("collection-changed"));
    }
    recall(thread);
  } catch (problem) {
    if (state.thread !== id || running) return;
    gone = problem.status === 404;
    if (gone) leaveThread({ replace: true });
    else $("turns").replaceChildren(h("p", { role: "alert" }, trouble(problem, () => openThread(id))));
  }
}

/** Puts what was said before what stands there: a question may have been asked meanwhile. */
function recall({ messages, result }) {
  const turns = [];
  const quoted = !state.about.llm;
  messages.forEach(({ role, text }, at) => {
    if (role === "user") {
      turns.push(new Turn(text, does, { quoted }));
      if (messages[at + 1]?.role !== "assistant") turns.at(-1).unanswered();
      return;
    }
    if (!turns.length) turns.push(new Turn("", does, { quoted }));
    turns.at(-1).recall(text, at === messages.length - 1 ? result : null);
  });
  $("turns").prepend(...turns.map((turn) => turn.element));
  toEnd(true);
}

/** What stands there before the first question. */
export function greet() {
  const empty = $("empty");
  const many = documentCount();
  empty.hidden = state.thread !== null || $("turns").childElementCount > 0 || many === null;
  if (empty.hidden) return;
  const some = many > 0;
  const coming = !some && $("jobs").querySelector("li:not([hidden]) progress") !== null;
  const add = h("button", { type: "button", class: "primary", click: () => $("files").click() }, "Add documents");
  const [heading, text] = some
    ? ["Ask about your documents", "Every sentence of an answer names the passage it is from. Where the documents hold no answer, you are told so."]
    : coming
      ? ["Your documents are being read in", "You can ask as soon as the first one is in."]
      : ["There are no documents here yet", "Add some, or drop them anywhere on this page: PDF, Word, Markdown, HTML, CSV, text."];
  empty.replaceChildren(
    gone ? h("p", { class: "note", role: "status" }, "The conversation of this address is not there any more.") : "",
    h("p", { class: "big" }, heading), h("p", { class: "muted" }, text), some || coming || !mayWrite() ? "" : add);
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
    if (running) { running.controller.abort(); return; }
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
