/* The documents of the collection: a list, each opened by its name, deleted after a question. */

import { call, query, request } from "./api.js";
import { $, announce, clean, count, h, icon, name } from "./dom.js";
import { confirm } from "./dialog.js";
import { showDocument } from "./source.js";
import { mayWrite, state } from "./state.js";

const FIRST = 100; // more are drawn when asked for
let all = [];
let loading = 0;

/** How many there are. */
export const documentCount = () => all.length;

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
  all = found;
  draw(FIRST, problem);
  document.dispatchEvent(new Event("documents-changed"));
}

function draw(most, problem) {
  $("documents").replaceChildren(...all.slice(0, most).map(line));
  $("documents-count").textContent = all.length ? String(all.length) : "";
  const note = $("documents-note");
  note.hidden = !problem && all.length > 0;
  note.textContent = problem ? problem.message : mayWrite() ? "None yet. Drop files here, or add them." : "None yet.";
  const rest = all.length - most;
  $("more-documents").hidden = rest <= 0;
  $("more-documents").textContent = `Show ${count(rest, "more document")}`;
  $("more-documents").onclick = () => draw(Infinity, null);
}

function line(source) {
  const label = clean(source.file_name);
  const facts = [{ indexing: "being read in", failed: "failed" }[source.status] ?? count(source.chunks, "passage")];
  if (source.notes?.length) facts.push(count(source.notes.length, "note"));
  const open = h("button", { type: "button", class: "open", click: () => showDocument(source) },
    h("span", { class: "label" }, name(source.file_name)),
    h("span", { class: source.status === "failed" ? "problem" : "muted" }, facts.join(" · ")));
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
  await loadDocuments();
  document.dispatchEvent(new Event("document-deleted"));
  $("add-files").focus();
}
