/* What a run's events and results are called on the page. */

import { clean, count } from "./dom.js";

/** What the steps do, by the names of the nodes. */
export const STEPS = {
  planner: "Plan",
  hybrid: "Search the documents",
  web: "Search the web",
  aggregator: "Put together",
  reranker: "Judge the passages",
  compressor: "Choose sentences",
  reasoning: "Write",
  reflection: "Check",
};

/** How a passage was found, by the names of the legs. */
export const LEGS = { vector: "meaning", bm25: "words", graph: "names", web: "web" };

const PARTS = {
  vector: "the search by meaning",
  bm25: "the search by words",
  graph: "the search by names",
  web: "the web",
  reranker: "judging the passages",
  llm: "the model",
  planner: "the model's plan",
  critic: "the model's check",
  checkpointer: "the memory of this conversation",
};

const DOUBTS = {
  weak_evidence: "Weak evidence: the passages are judged not to answer the question. Check them before you rely on this.",
  unverified: "Not verified: the answer could not be checked against its sources.",
  unranked: "Not judged: the passages were found, but not weighed against the question.",
  shortened: "Shortened: what the passages don't support was rewritten or left out.",
};

export const step = (node) => STEPS[node] ?? clean(node);
export const leg = (key) => LEGS[key] ?? clean(key);
export const part = (key) => PARTS[key] ?? clean(key);
export const doubt = (flag) => DOUBTS[flag] ?? clean(flag);

/** A time span: short ones to the tenth. */
export const seconds = (value) => `${value < 0.05 ? "0.0" : value < 10 ? value.toFixed(1) : Math.round(value)} s`;

/** A time span of a step, which may be short. */
export const brief = (value) => (value < 0.1 ? `${Math.round(value * 1000)} ms` : seconds(value));

/** A judgement as a number with its sign; "" where there is none. */
export const score = (value) => (value ? `${value > 0 ? "+" : "−"}${Math.abs(value).toFixed(2)}` : "");

/** What a step did, from what it tells. */
export function did(node, details) {
  const told = DID[node]?.(details);
  return told ? clean(told) : "";
}

const DID = {
  planner: ({ route, query }) => (route === "direct" ? "no search needed" : query ? `looks for “${query}”` : ""),
  hybrid: ({ candidates }) => found(candidates),
  web: ({ candidates, web_denied: denied }) => (denied ? "not allowed" : found(candidates)),
  aggregator: ({ documents, same_text: same }) =>
    documents === undefined ? "" : count(documents, "passage") + (same ? `, ${same} with the same text` : ""),
  reranker: ({ documents, above_zero: good }) =>
    good === undefined ? "" : `${good} of ${documents ?? "?"} judged relevant`,
  compressor: ({ evidence, sentences }) =>
    sentences === undefined ? "" : `${count(sentences, "sentence")} of ${count(evidence, "passage")}`,
  // why it goes on is told beside where it goes
  reflection: ({ verdict }) => (["retry", "escalate"].includes(verdict?.action) ? "not yet" : verdict?.reason ?? ""),
};

function found(candidates) {
  const legs = Object.entries(candidates ?? {}).filter(([, number]) => number);
  return legs.map(([key, number]) => `${number} by ${leg(key)}`).join(", ");
}

/** What to tell beside a finished answer: [kind, text], the gravest first. `lost` is part → why. */
export function notes(result, lost) {
  const said = result.flags.map((flag) => [flag === "shortened" ? "note" : "doubt", doubt(flag)]);
  if (result.indexing?.length) {
    const names = result.indexing.map(clean).join(", ");
    said.push(["note", `Still being read in, and not searched yet: ${names}.`]);
  }
  for (const key of result.degraded) {
    const why = clean(lost.get(key) ?? "");
    said.push(["doubt", `Without ${part(key)}${why ? `: ${why}` : "."}`]);
  }
  const cut = result.context.filter((row) => row.sentences?.no_room);
  if (cut.length) {
    const sentences = cut.reduce((sum, row) => sum + row.sentences.no_room, 0);
    said.push(["note", `Not all was read: ${count(sentences, "sentence")} of ${count(cut.length, "passage")} had no room.`]);
  }
  if (result.limits?.length) {
    said.push(["note", `Held back by the budget of a question: ${result.limits.map((key) => clean(key).replace(/_/g, " ")).join(", ")}.`]);
  }
  return said;
}

/** Who wrote the answer. */
export const writer = (model) => (!model || model === "extractive" ? "Quoted from the sources" : `Written by ${clean(model)}`);
