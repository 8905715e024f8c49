/* Files on their way in: sent, then followed in the job that reads them until all are in or have failed. */

import { call, query, send } from "./api.js";
import { $, announce, clean, count, h, icon, name } from "./dom.js";
import { loadDocuments } from "./documents.js";
import { mayWrite, state } from "./state.js";

const SOON_MS = 400;
const LATE_MS = 2500;
const SLOWER = 1.3;
const FINAL = new Set(["done", "partial", "failed"]);
const SHOWN = 6; // files of a job that are named while it runs: those that need to be seen first
const ORDER = ["failed", "running", "queued", "done", "unchanged"];
const SAID = { queued: "waits", running: "being read in", unchanged: "was there already" };
const followed = new Map(); // job id → its line

/** Sends files into the collection, and follows them. */
export async function addFiles(files) {
  const chosen = [...files];
  if (!chosen.length || !mayWrite()) return;
  const collection = state.collection;
  const line = lineOf(collection);
  const refusal = tooMuch(chosen);
  if (refusal) { failed(line, refusal); return; }
  const form = new FormData();
  for (const file of chosen) form.append("files", file, file.name);
  try {
    follow(await send(`/documents${query({ collection })}`, form, sending(chosen, line)), line, collection);
  } catch (problem) {
    if (problem.name === "AbortError") line.remove();
    else failed(line, [problem.message, problem.hint].filter(Boolean).join(" "));
  }
  document.dispatchEvent(new Event("documents-changed"));
}

/** A line of files that go into that collection, seen while the page is about it. */
function lineOf(collection) {
  return $("jobs").appendChild(h("li", { "data-collection": collection, hidden: collection !== state.collection }));
}

/** Shows how much of the files is out, with a button that stops it. What `send` is to be told. */
function sending(files, line) {
  const said = h("p", {}, `Sending ${count(files.length, "file")}…`);
  const bar = h("progress", { "aria-label": "Sending", max: 1 });
  const stop = new AbortController();
  line.replaceChildren(said, bar, closing("Stop sending", () => stop.abort()));
  document.dispatchEvent(new Event("documents-changed"));
  const sent = (part) => {
    bar.value = part;
    said.textContent = `Sending ${count(files.length, "file")}: ${Math.floor(part * 100)} %`;
  };
  return { sent, signal: stop.signal };
}

/** What the server would refuse, said before anything is sent; "" where nothing is. */
function tooMuch(files) {
  const limits = state.about.limits ?? {};
  const bytes = files.reduce((sum, file) => sum + file.size, 0);
  if (limits.max_upload_files && files.length > limits.max_upload_files) {
    return `${count(files.length, "file")} are more than the ${limits.max_upload_files} that may be sent at once.`;
  }
  const big = files.find((file) => file.size > (limits.max_file_mb ?? Infinity) * 1e6);
  if (big) return `${clean(big.name)} is larger than the ${limits.max_file_mb} MB that a file may have.`;
  if (limits.max_upload_mb && bytes > limits.max_upload_mb * 1e6) {
    return `The files are larger than the ${limits.max_upload_mb} MB that may be sent at once.`;
  }
  return "";
}

/** Follows what is being read in already, by this page before a reload or by another. */
export async function loadJobs() {
  for (const line of followed.values()) line.remove();
  followed.clear();
  const { collection } = state;
  for (const line of $("jobs").children) line.hidden = line.dataset.collection !== collection;
  let jobs = [];
  try {
    ({ jobs } = await call(`/jobs${query({ collection })}`));
  } catch { /* the documents' list says what is wrong */ }
  if (collection !== state.collection) return;
  for (const job of jobs) {
    if (!FINAL.has(job.status) && !followed.has(job.id)) follow(job, lineOf(collection), collection);
  }
}

async function follow(job, line, collection) {
  if (collection !== state.collection) { line.remove(); return; } // found again by whoever comes back to it
  followed.set(job.id, line);
  let pause = SOON_MS;
  let before = 0;
  for (;;) {
    if (followed.get(job.id) !== line) return; // another collection is shown now
    draw(job, line);
    if (FINAL.has(job.status)) break;
    if (finished(job) > before) loadDocuments();
    before = finished(job);
    await new Promise((resolve) => { setTimeout(resolve, pause); });
    pause = Math.min(pause * SLOWER, LATE_MS);
    try {
      job = await call(`/jobs/${encodeURIComponent(job.id)}`);
    } catch (problem) {
      if (problem.status === 404) { failed(line, "The server knows nothing of these files any more."); return; }
      if (problem.status === 401) return; // who comes in again finds the job again
      line.querySelector(".standing")?.replaceChildren(problem.message); // the job goes on without this page
      pause = LATE_MS;
    }
  }
  followed.delete(job.id);
  ended(job, line);
  if (collection === state.collection) await loadDocuments();
}

const finished = (job) => job.items.filter((item) => !["queued", "running"].includes(item.status)).length;

function draw(job, line) {
  const { items } = job;
  const done = finished(job);
  const many = items.length > 1;
  const which = many ? count(items.length, "file") : name(items[0]?.file_name);
  const what = job.status === "queued" ? [which, many ? " wait to be read in" : " waits to be read in"] : ["Reading ", which];
  line.replaceChildren(
    h("p", { class: "standing" }, ...what, many && done ? `: ${done} done` : ""),
    h("progress", { max: items.length || 1, value: done, "aria-label": "Files read in" }),
    many ? h("ul", { class: "items" }, ...some(items)) : "",
  );
}

function some(items) {
  const sorted = [...items].sort((a, b) => ORDER.indexOf(a.status) - ORDER.indexOf(b.status));
  const rest = sorted.length - SHOWN;
  return [...sorted.slice(0, SHOWN).map(item), rest > 0 ? h("li", { class: "muted" }, `and ${rest} more`) : null].filter(Boolean);
}

function item(each) {
  const said = each.status === "done" ? count(each.chunks ?? 0, "passage") : SAID[each.status] ?? each.status;
  if (each.status === "failed") return told([each], each.error || "could not be read.", "problem");
  return h("li", { class: "row" }, h("span", { class: "label" }, name(each.file_name)), h("span", { class: "muted" }, said));
}

function ended(job, line) {
  const bad = job.items.filter((each) => each.status === "failed");
  const same = job.items.filter((each) => each.status === "unchanged");
  const good = job.items.length - bad.length;
  if (good) announce(good === 1 && job.items.length === 1 ? `${clean(job.items[0].file_name)} is read in.` : `${count(good, "file")} read in.`);
  if (!bad.length && !same.length) { line.remove(); return; }
  const reasons = new Map(); // one line for all that failed alike
  for (const each of bad) {
    const why = each.error || job.error || "could not be read.";
    reasons.set(why, [...(reasons.get(why) ?? []), each]);
  }
  const lines = [...reasons].map(([why, files]) => told(files, why, "problem"));
  if (same.length) lines.push(told(same, "there already, unchanged.", "muted"));
  line.replaceChildren(h("ul", { class: "items" }, ...lines), dismiss(line));
  if (bad.length) announce(`${count(bad.length, "file")} could not be read.`);
}

function told(files, text, kind) {
  const names = files.flatMap((each, at) => [at ? ", " : "", name(each.file_name)]);
  return h("li", {}, ...names, ": ", h("span", { class: kind }, clean(text)));
}

function failed(line, text) {
  line.replaceChildren(h("p", { class: "problem", role: "alert" }, text), dismiss(line));
}

const dismiss = (line) => closing("Dismiss", () => line.remove());

function closing(label, act) {
  return h("button", { type: "button", class: "icon small", "aria-label": label, title: label, click: () => { act(); $("add-files").focus(); } }, icon("close"));
}

/** The files of what was dropped; folders are told to be none. */
function dropped(transfer) {
  const items = [...transfer.items].filter((item) => item.kind === "file");
  const files = items.filter((item) => !item.webkitGetAsEntry()?.isDirectory).map((item) => item.getAsFile());
  if (files.length < items.length) failed(lineOf(state.collection), "A folder can't be dropped here: drop the files that are in it.");
  return files;
}

/** The button, and files dropped anywhere on the page. */
export function startUploads() {
  $("add-files").addEventListener("click", () => $("files").click());
  $("files").addEventListener("change", () => { addFiles($("files").files); $("files").value = ""; });
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  const may = () => !$("app").hidden && mayWrite();
  let over = 0;
  const cover = (shown) => {
    $("drop").hidden = !shown;
    $("drop").querySelector("p").textContent = `Drop the files to add them to “${state.collection}”`;
  };
  addEventListener("dragenter", (event) => { if (hasFiles(event)) { over += 1; cover(may()); } });
  addEventListener("dragleave", (event) => { if (hasFiles(event)) { over = Math.max(0, over - 1); if (!over) cover(false); } });
  // Always prevented: a file dropped a little beside would replace the page.
  addEventListener("dragover", (event) => { if (hasFiles(event)) event.preventDefault(); });
  addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    over = 0;
    cover(false);
    if (may()) addFiles(dropped(event.dataTransfer));
  });
}
