/* What came nearest where there is no answer: the best passage of each of a few files. */

import { call } from "./api.js";
import { clean, h, name, place } from "./dom.js";

const SHOWN = 3;
const CHARS = 220;

/** Adds them to `body`, each a button that shows the passage. */
export function nearest(body, result, showSource) {
  const best = new Map();
  for (const row of result.context) if (!best.has(row.file_name)) best.set(row.file_name, row);
  const rows = [...best.values()].slice(0, SHOWN);
  if (!rows.length) return;
  const named = rows.every((row) => result.answer.includes(row.file_name)); // then it says what follows
  if (!named) body.append(h("h4", {}, "Nearest passages"));
  const list = body.appendChild(h("ul", { class: "nearest", "aria-label": "Nearest passages" }));
  for (const row of rows) {
    const excerpt = h("span", { class: "excerpt", dir: "auto" });
    list.append(h("li", {}, h("button", { type: "button", click: () => showSource(row, []) }, h("strong", {}, name(place(row))), excerpt)));
    fill(excerpt, row.chunk_id);
  }
}

async function fill(excerpt, id) {
  try {
    const { text } = await call(`/chunks/${encodeURIComponent(id)}`);
    const line = clean(text);
    excerpt.textContent = line.length > CHARS ? `${line.slice(0, CHARS).replace(/\s\S*$/, "")} …` : line;
  } catch {
    excerpt.textContent = "This passage is no longer there.";
  }
  excerpt.dispatchEvent(new CustomEvent("grown", { bubbles: true }));
}
