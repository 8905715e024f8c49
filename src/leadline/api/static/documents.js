/* The documents of the collection: a list, each opened by its name, deleted after a question. */

import { call, query, request } from "./api.js";
import { $, announce, clean, count, h, icon, keepingFocus, name, trouble } from "./dom.js";
import { confirm } from "./dialog.js";
import { showDocument } from "./source.js";
import { mayWrite, state } from "./state.js";

const FIRST = 100; // more are drawn when asked for
let all = [];
let of = null; // the collection that they are of
let most = FIRST;
let loading = 0;

/** How many can be asked about; null where that isn't known yet. */
export const documentCount = () => (of === state.collection ? all.filter((source) => source.chunks > 0).length : null);

/** Reads the list anew. Fires `documents-changed` on the page. */
export async function loadDocuments() {
  const mine = ++loading;
  let problem = null;
  let found = [];
  try {
    found = (await call(`/documents${query({ collection: state.collection })}`)).documents;
  } catch (error) {
    if (error.status !== 404) problem = error; // a collection that has nothing yet isn't there yet
  }
  if (mine !== loading) return;
  if (of !== state.collection) most = FIRST;
  of = problem ? null : state.collection;
  all = found;
  draw(problem);
  document.dispatchEvent(new Event("documents-changed"));
}

function draw(problem = null) {
  keepingFocus($("documents"), () => $("documents").replaceChildren(...all.slice(0, most).map(line)));
  const bad = all.filter((source) => source.status === "failed").length;
  const good = all.length - bad;
  $("documents-count").textContent = [good && String(good), bad && `${bad} failed`].filter(Boolean).join(" · ");
  const note = $("documents-note");
  note.hidden = !problem && all.length > 0;
  if (problem) note.replaceChildren(...trouble(problem, loadDocuments));
  else note.textContent = mayWrite() ? "None yet. Drop files here, or add them." : "None yet.";
  const rest = all.length - most;
  $("more-documents").hidden = rest <= 0;
  $("more-documents").textContent = `Show ${count(rest, "more document")}`;
  $("more-documents").onclick = () => {
    const at = most;
    most = Infinity;
    draw();
    $("documents").children[at]?.querySelector("button").focus();
  };
}

function line(source) {
  const label = clean(source.file_name);
  const facts = [{ indexing: "being read in", failed: "failed" }[source.status] ?? count(source.chunks, "passage")];
  if (source.status === "ready" && source.error) facts.push("its newer version failed");
  if (source.notes?.length) facts.push(count(source.notes.length, "note"));
  const open = h("button", { type: "button", class: "open", click: () => showDocument(source) },
    h("span", { class: "label" }, name(source.file_name)),
    h("span", { class: source.error ? "problem" : "muted" }, facts.join(" · ")));
  const remove = mayWrite() && h("button", { type: "button", class: "icon small", "aria-label": `Delete ${label}`, title: "Delete", click: () => ask(source) }, icon("trash"));
  return h("li", { "data-doc": source.doc_id, title: clean(source.uri ?? "") || null }, open, remove || "");
}

async function ask(source) {
  const label = clean(source.file_name);
  const done = await confirm({
    title: "Delete this document?",
    text: `“${label}” and its ${count(source.chunks, "passage")} are taken out of the collection, and what was quoted from it out of the conversations.`,
    yes: "Delete",
    danger: true,
    action: () => request(`/documents/${encodeURIComponent(source.doc_id)}`, { method: "DELETE" }),
  });
  if (!done) return;
  announce(`${label} is deleted.`);
  const at = [...$("documents").children].findIndex((each) => each.dataset.doc === source.doc_id);
  await loadDocuments();
  document.dispatchEvent(new Event("document-deleted"));
  const next = $("documents").children[Math.min(at, $("documents").childElementCount - 1)];
  (next?.querySelector(".icon") ?? $("add-files")).focus(); // several are deleted one after another
}
