/* The right side as a reader: a cited passage in its document, and a document as a whole. */

import { call, query, request } from "./api.js";
import { clean, count, h, name, outward, place, webAddress, when } from "./dom.js";
import { openPanel } from "./drawers.js";
import { highlighted } from "./highlight.js";

const PAGE = 30; // passages of a document fetched at once
let shown = 0; // which showing is the last: a slow answer to an earlier one is dropped

/** Shows the passage of `from` (a citation, or a row of the evidence), with its quotes marked, and what stands around.
    `back` is a button that leads to where one came from. */
export async function showSource(from, citations, back = "") {
  const mine = ++shown;
  const body = h("div", { class: "reader", "aria-busy": "true" }, h("p", { class: "muted" }, "Opening…"));
  openPanel("Source", back, body);
  try {
    const chunk = await call(`/chunks/${encodeURIComponent(from.chunk_id)}`);
    if (mine !== shown) return;
    const quotes = citations.filter((each) => each.chunk_id === from.chunk_id).map((each) => ({
      quote: each.quote, at: each.start_char - chunk.start_char, chosen: each === from,
    }));
    quotes.sort((a, b) => b.chosen - a.chosen);
    const passage = passageOf(chunk.text, highlighted(chunk.text, quotes));
    const text = h("div", { class: "text", tabindex: "0", role: "region", "aria-label": "Text of the document" }, passage);
    body.replaceChildren(headOf(chunk), text);
    if (from.quote && !passage.querySelector(".chosen")) {
      text.before(h("p", { class: "note" }, "The quote is not found in the passage as it is now: ", h("q", {}, clean(from.quote))));
    }
    await Promise.all([around(text, chunk, "previous", mine), around(text, chunk, "next", mine)]);
    (passage.querySelector(".chosen") ?? passage).scrollIntoView({ block: "center" });
  } catch (problem) {
    if (mine === shown) body.replaceChildren(gone(from, problem));
  } finally {
    body.removeAttribute("aria-busy");
  }
}

/** What is in columns or is code needs signs of one width to be read. */
function passageOf(text, content) {
  return h("div", { class: /^ *(```|~~~|\|.*\| *$)/m.test(text) ? "passage fixed" : "passage", dir: "auto" }, content);
}

function gone(from, problem) {
  return h("div", {}, h("p", { class: "name" }, name(place(from))), from.quote ? h("blockquote", { dir: "auto" }, clean(from.quote)) : null,
    h("p", { class: "problem" }, problem.status === 404 ? "This passage is no longer there." : problem.message));
}

function headOf(chunk) {
  const url = chunk.source_type === "web" ? webAddress(chunk.url) : null;
  const time = when(chunk.retrieved_at);
  const path = (chunk.headings ?? []).map(clean).filter(Boolean).join(" › ");
  return h("header", {},
    h("p", { class: "name" }, url ? h("span", { class: "badge" }, "Web") : null, name(chunk.file_name)),
    chunk.page ? h("p", { class: "muted" }, `Page ${chunk.page}`) : null,
    url ? h("p", { class: "muted" }, outward(url, url.host), time ? ` read ${time}` : "") : null,
    path ? h("p", { class: "muted", dir: "auto" }, path) : null);
}

/** Puts the neighbour on one side there, dimmed, and below or above it a button for the one after that. */
async function around(text, chunk, side, mine) {
  if (!chunk[side]) return;
  let neighbour;
  try {
    neighbour = await call(`/chunks/${encodeURIComponent(chunk[side])}`);
  } catch {
    return; // the passage itself is there, which is what was asked for
  }
  if (mine !== shown) return;
  const element = passageOf(neighbour.text, [pageMark(chunk, neighbour, side), withoutOverlap(chunk, neighbour, side)]);
  element.classList.add("beside");
  const more = neighbour[side] && h("button", { type: "button", class: "link more", click: () => { more.remove(); around(text, neighbour, side, mine); } },
    side === "next" ? "Show what follows" : "Show what comes before");
  if (side === "next") text.append(element, more || "");
  else text.prepend(more || "", element);
}

function pageMark(chunk, neighbour, side) {
  if (!neighbour.page || neighbour.page === chunk.page) return null;
  return h("p", { class: "page" }, side === "next" ? `Page ${neighbour.page}` : `Page ${neighbour.page}, before`);
}

/** Passages may overlap: what both have is shown once. */
function withoutOverlap(chunk, neighbour, side) {
  const text = neighbour.text;
  const both = side === "next" ? chunk.end_char - neighbour.start_char : neighbour.end_char - chunk.start_char;
  if (!(both > 0 && both < text.length)) return text;
  const shared = side === "next" ? text.slice(0, both) : text.slice(-both);
  const same = side === "next" ? chunk.text.endsWith(shared) : chunk.text.startsWith(shared);
  if (!same) return text;
  return side === "next" ? text.slice(both) : text.slice(0, -both);
}

/** Shows a document: what is known of it, and its passages in order, a part at a time. */
export async function showDocument(source) {
  const mine = ++shown;
  const text = h("div", { class: "text", tabindex: "0", role: "region", "aria-label": "Text of the document" });
  const failed = source.status === "failed"; // it has no text, and the head says why
  openPanel("Document", h("div", { class: "reader" }, documentHead(source), failed ? null : text));
  if (failed) return;
  await passages(source, text, 0, mine);
}

async function passages(source, text, offset, mine) {
  try {
    const { passages: some, total } = await call(`/documents/${encodeURIComponent(source.doc_id)}${query({ offset, limit: PAGE })}`);
    if (mine !== shown) return;
    let page = text.dataset.page ?? "";
    for (const each of some) {
      if (each.page && String(each.page) !== page) text.append(h("p", { class: "page" }, `Page ${each.page}`));
      page = String(each.page ?? "");
      text.append(passageOf(each.text, each.text));
    }
    text.dataset.page = page;
    const next = offset + some.length;
    if (some.length && next < total) {
      const more = h("button", { type: "button", class: "link more", click: () => { more.remove(); passages(source, text, next, mine); } }, "Show more");
      text.append(more);
    }
    if (!total) text.append(h("p", { class: "muted" }, "There is no text in it."));
  } catch (problem) {
    if (mine === shown) text.append(h("p", { class: "problem" }, problem.status === 404 ? "This document is no longer there." : problem.message));
  }
}

function documentHead(source) {
  const facts = source.status === "failed" ? [] : [count(source.chunks, "passage")];
  if (source.pages) facts.unshift(count(source.pages, "page"));
  if (source.bytes) facts.push(size(source.bytes));
  if (source.added_at) facts.push(`added ${when(source.added_at)}`);
  return h("header", {},
    h("p", { class: "name" }, name(source.file_name)),
    h("p", { class: "muted" }, facts.join(" · ")),
    source.error ? h("p", { class: "problem" }, clean(source.error)) : null,
    (source.notes ?? []).map((note) => h("p", { class: "muted" }, clean(note))),
    source.has_file ? h("p", {}, h("button", { type: "button", click: (event) => save(source, event.currentTarget) }, "Save the file")) : null);
}

/** The file, fetched with the token, which a plain link could not send. */
async function save(source, button) {
  try {
    const file = await (await request(`/documents/${encodeURIComponent(source.doc_id)}/file`)).blob();
    const address = URL.createObjectURL(file);
    h("a", { href: address, download: clean(source.file_name) }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  } catch (problem) {
    button.after(h("p", { class: "problem" }, problem.message));
  }
}

export function size(bytes) {
  const units = ["B", "KB", "MB", "GB"];
  let unit = 0;
  let value = bytes;
  while (value >= 1000 && unit < units.length - 1) { value /= 1000; unit += 1; }
  return `${value < 10 && unit ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}
