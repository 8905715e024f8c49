/* Quotes in the text of a passage, as marks. */

import { h } from "./dom.js";

/** The text as nodes, with each of the `quotes` ({quote, at, chosen}) marked where it stands nearest to `at`. */
export function highlighted(text, quotes) {
  const places = [];
  for (const quote of quotes) {
    const found = placeOf(text, quote.quote, quote.at);
    if (found && !places.some((other) => found.start < other.end && other.start < found.end)) {
      places.push({ ...found, chosen: quote.chosen });
    }
  }
  places.sort((a, b) => a.start - b.start);
  const nodes = [];
  let end = 0;
  for (const { start, end: to, chosen } of places) {
    nodes.push(text.slice(end, start), h("mark", { class: chosen ? "chosen" : null }, text.slice(start, to)));
    end = to;
  }
  nodes.push(text.slice(end));
  return nodes;
}

/** Where `quote` stands: as it is, else with other white space. The server counts characters, this language halves of
    some, so `at` only chooses among equal ones. */
function placeOf(text, quote, at) {
  if (!quote?.trim()) return null;
  let best = null;
  for (let start = text.indexOf(quote); start >= 0; start = text.indexOf(quote, start + 1)) {
    if (best === null || Math.abs(start - at) < Math.abs(best - at)) best = start;
  }
  if (best !== null) return { start: best, end: best + quote.length };
  const words = quote.trim().split(/\s+/).map((word) => word.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  const match = new RegExp(words.join("\\s+")).exec(text);
  return match && { start: match.index, end: match.index + match[0].length };
}
