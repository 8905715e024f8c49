/* The evidence of a question: every passage that was found, by what, how it was judged, and what became of it. */

import { clean, count, h, name, place, svg } from "./dom.js";
import { openPanel, wayBack } from "./drawers.js";
import { leg, score } from "./words.js";

const FIRST = 15;
const LEAST_SCALE = 2; // a bar of a score near zero stays short

/** Shows the table of a result. */
export function showEvidence(result, showSource) {
  const rows = result.context;
  const scale = Math.max(LEAST_SCALE, ...rows.map((row) => Math.abs(row.rerank_score)));
  const body = h("tbody", {}, rows.slice(0, FIRST).map((row) => line(row, result, scale, showSource)));
  const table = h("table", { class: "evidence" },
    h("caption", { class: "hidden" }, "Passages found"),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Passage"), h("th", { scope: "col" }, "Found by"), h("th", { scope: "col" }, "Judged"))),
    body);
  const rest = rows.slice(FIRST);
  const more = rest.length > 0 && h("button", { type: "button", class: "link more", click: () => {
    more.remove();
    body.append(...rest.map((row) => line(row, result, scale, showSource)));
  } }, `Show ${count(rest.length, "more passage", "more passages")}`);
  openPanel("Evidence", verdict(result), legend(rows), table, more || "");
}

function verdict(result) {
  const queries = result.queries?.length > 1 ? h("p", { class: "muted" }, "Searched for: ", result.queries.map((text, at) => [at ? "; " : "", h("q", {}, clean(text))]).flat()) : null;
  return h("div", { class: "verdict" }, h("p", { class: "question", dir: "auto" }, result.question), h("p", {}, clean(result.verdict.reason)), queries);
}

function line(row, result, scale, showSource) {
  const open = h("button", { type: "button", class: "link", click: () => showSource(row, result.citations, wayBack("Evidence")) }, name(place(row)));
  return h("tr", { class: row.kept ? "kept" : "dropped" },
    h("td", {}, row.source_type === "web" ? h("span", { class: "badge" }, "Web") : null, open,
      h("p", { class: "fate" }, h("strong", {}, row.kept ? "Kept" : "Dropped"), `: ${clean(row.why)}`)),
    h("td", { class: "legs" }, Object.entries(row.found_by).map(([key, found]) => h("span", {}, `${leg(key)} ${found.rank + 1}`))),
    h("td", { class: "judged" }, bar(row.rerank_score, scale)));
}

/** A bar from the middle: to the right for the question, to the left against it. */
function bar(value, scale) {
  if (!value) return h("span", { class: "muted" }, "not judged");
  const half = 30;
  const width = Math.max(0.8, (Math.abs(value) / scale) * half);
  const picture = svg("svg", { viewBox: "0 0 60 10", class: "bar-pic", "aria-hidden": "true", preserveAspectRatio: "none" },
    svg("rect", { class: value > 0 ? "for" : "against", x: value > 0 ? half : half - width, y: 1, width, height: 8 }),
    svg("path", { class: "zero", d: `M${half} 0v10`, "vector-effect": "non-scaling-stroke" }));
  return h("span", { class: "judgement" }, picture, h("span", { class: "number" }, score(value)));
}

function legend(rows) {
  const legs = [...new Set(rows.flatMap((row) => Object.keys(row.found_by)))].map(leg).join(", ");
  return h("p", { class: "muted legend" },
    `Found by: the place in each search (${legs}). Judged: above zero it answers the question, below it does not.`);
}
