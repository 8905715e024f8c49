/* One question and what came of it: the steps, the answer as it streams, its sources and its doubts. */

import { announce, clean, count, h, name, outward, place, webAddress, when } from "./dom.js";
import { fromMarkdown, fromPlain, withMarks } from "./markdown.js";
import { nearest } from "./nearest.js";
import { peekAt } from "./peek.js";
import { Steps } from "./steps.js";
import { notes, writer } from "./words.js";

const QUIET_MS = 4000;
const waiting = (n) => h("span", { class: "cite waiting" }, String(n));
const unkept = (n) => h("span", { class: "cite waiting", title: "The sources of earlier answers are not kept" }, String(n));

/** `does` is what a turn can ask for: showSource, showEvidence, askAgain(question, consent). */
export class Turn {
  #does;
  #steps = null;
  #answer = h("div", { class: "answer", dir: "auto" });
  #after = h("div", { class: "after" });
  #draft = "";
  #quoted;
  #drawing = 0;
  #lost = new Map();
  #outgoing = null; // the query that would have gone to the web
  #ended = false;
  #told = performance.now();

  /** `quoted`: the answer will be quotation, and is shown as it stands, not as Markdown. */
  constructor(question, does, { quoted = false } = {}) {
    this.question = question;
    this.#does = does;
    this.#quoted = quoted;
    this.element = h("article", { class: "turn" }, h("h2", { class: "question", dir: "auto" }, question), this.#answer, this.#after);
  }

  /** The run begins. */
  begin() {
    this.#steps = new Steps();
    this.#answer.before(this.#steps.element);
    this.#answer.setAttribute("aria-busy", "true");
    this.#is("running");
  }

  /** The status of the turn in its markup: that of the result, or what became of a run without one. */
  #is(status) {
    this.element.dataset.status = clean(status);
  }

  /** What one event of the run changes. */
  take(event) {
    this.#steps.take(event);
    if (event.type === "step" && event.phase === "start") this.#tell(this.#steps.now);
    if (event.type === "token") this.#stream(this.#draft + event.text);
    if (event.type === "retract") this.#stream("");
    if (event.type === "degraded") this.#lost.set(event.part, event.reason);
    if (event.type === "consent") this.#outgoing = event.granted === false ? event.query : null;
    if (event.type === "final") this.#finish(event.result);
  }

  /** Says what is being done, where nothing was said for a while: a quick run is heard by its answer only. */
  #tell(text) {
    const now = performance.now();
    if (now - this.#told < QUIET_MS) return;
    this.#told = now;
    announce(text);
  }

  get ended() {
    return this.#ended;
  }

  /** A turn of an earlier visit: its text, and the result where that is still known. */
  recall(text, result) {
    this.#ended = true;
    if (result) this.#show(result);
    else {
      this.#is("kept");
      this.#answer.replaceChildren(withMarks(fromMarkdown(text), unkept));
    }
  }

  /** A question of an earlier visit that has no answer. */
  unanswered() {
    this.#ended = true;
    this.#is("unanswered");
    this.#after.append(h("p", { class: "note" }, "No answer is kept: it was stopped, or made from a document that is deleted."), this.#again());
  }

  /** The stream ended without a result, which is what interrupted means: nobody is left to send one where a server is
      killed. `problem` says why it ended, null where the person stopped it. */
  broke(problem) {
    this.#ended = true;
    const stopped = problem === null;
    const refused = !stopped && (problem.status >= 400 || problem.code === "unreachable");
    this.#is(stopped ? "stopped" : refused ? "refused" : "interrupted");
    this.#halt(stopped ? "stopped" : refused ? "not asked" : "interrupted");
    const heading = stopped ? "Stopped" : refused ? "Not answered" : "Interrupted";
    const text = stopped
      ? "The answer is not complete."
      : refused ? problem.message : `${this.#draft ? "The answer broke off and is not complete. " : ""}${problem.message}`;
    this.#card("broken", heading, text, problem?.hint);
    this.#after.append(this.#again());
    announce(`${heading}. ${text}`);
  }

  #stream(text) {
    this.#draft = text;
    if (this.#drawing) return;
    this.#drawing = requestAnimationFrame(() => {
      this.#drawing = 0;
      this.#write(this.#draft, waiting);
      this.element.dispatchEvent(new CustomEvent("grown", { bubbles: true }));
    });
  }

  #write(text, mark) {
    this.#answer.replaceChildren(withMarks(this.#quoted ? fromPlain(text) : fromMarkdown(text), mark));
  }

  #halt(ending, spent) {
    cancelAnimationFrame(this.#drawing);
    this.#drawing = 0;
    // What is shown may be older than the draft: a withdrawn one must not stay because its last drawing was given up.
    this.#write(this.#draft, waiting);
    this.#answer.classList.toggle("incomplete", Boolean(ending && this.#draft));
    this.#answer.removeAttribute("aria-busy");
    this.#steps?.end({ ending, spent });
  }

  #finish(result) {
    this.#ended = true;
    const broken = result.status === "interrupted" || result.status === "error";
    this.#halt(broken ? (result.status === "error" ? "failed" : "interrupted") : undefined, result.usage?.seconds);
    this.#show(result);
    announce(this.#said());
  }

  /** What is read out at the end: how it ended, or the answer without its marks; then each doubt, and an offer. */
  #said() {
    const answer = this.#answer.cloneNode(true);
    for (const mark of answer.querySelectorAll(".cite")) mark.remove();
    const outcome = this.element.querySelector(".outcome")?.textContent ?? answer.textContent;
    const more = [...this.#after.querySelectorAll(".note, .consent h3")].map((each) => each.textContent);
    return [outcome, ...more].join(" ").replace(/\s+/g, " ").trim();
  }

  #show(result) {
    this.#is(result.status);
    this.#quoted = (result.models?.llm ?? "extractive") === "extractive";
    if (result.status === "answered") this.#answered(result);
    else if (result.status === "abstained") this.#abstained(result);
    else this.#failed(result);
    for (const [kind, text] of notes(result, this.#lost)) {
      this.#after.append(h("p", { class: `note ${kind}`, dir: "auto" }, text));
    }
    this.#offerWeb();
    this.#foot(result);
  }

  #answered(result) {
    const given = new Map();
    this.#write(result.answer, (n) => {
      const all = result.citations.filter((citation) => citation.n === n);
      if (!all.length) return null;
      const at = given.get(n) ?? 0;
      given.set(n, at + 1);
      return this.#cite(all[Math.min(at, all.length - 1)], result);
    });
    if (result.citations.length) this.#after.append(this.#sources(result));
  }

  #cite(citation, result) {
    const from = citation.source_type === "web" ? `web, ${place(citation)}` : place(citation);
    const label = `Source ${citation.n}: ${from}${citation.verified ? "" : ", not verified"}`;
    const button = h("button", {
      type: "button",
      class: citation.verified ? "cite" : "cite doubtful",
      "aria-label": label,
      click: () => this.#does.showSource(citation, result.citations),
    }, String(citation.n));
    peekAt(button, citation);
    return button;
  }

  #sources(result) {
    const firsts = new Map();
    for (const citation of result.citations) if (!firsts.has(citation.n)) firsts.set(citation.n, citation);
    const lines = [...firsts.values()].sort((a, b) => a.n - b.n).map((citation) => this.#source(citation, result));
    return h("ul", { class: "sources", "aria-label": "Sources" }, ...lines);
  }

  #source(citation, result) {
    const show = h("button", { type: "button", class: "link", click: () => this.#does.showSource(citation, result.citations) },
      h("span", { class: "number" }, String(citation.n)), name(place(citation)));
    const url = citation.source_type === "web" ? webAddress(citation.url) : null;
    if (!url) return h("li", {}, show);
    const time = when(citation.retrieved_at);
    return h("li", {}, h("span", { class: "badge" }, "Web"), show, " ",
      outward(url, url.host), time ? h("span", { class: "muted" }, ` read ${time}`) : null);
  }

  #abstained(result) {
    this.#answer.replaceChildren();
    const body = h("div", { class: "card calm" }, h("h3", { class: "outcome" }, "No answer found"), h("p", { dir: "auto" }, result.answer));
    this.#after.append(body);
    nearest(body, result, this.#does.showSource);
    body.append(h("p", { class: "muted" }, clean(result.verdict.reason)));
  }

  #failed(result) {
    const error = result.error;
    if (result.status === "interrupted") {
      this.#card("broken", "Interrupted", clean(result.verdict?.reason) || "The answer broke off before its end.");
    } else {
      this.#card("broken", "That went wrong", error?.message ?? clean(result.verdict?.reason), error?.hint);
    }
    this.#after.append(this.#again());
  }

  #card(kind, heading, text, hint) {
    this.#after.append(h("div", { class: `card ${kind}` }, h("h3", { class: "outcome" }, heading),
      h("p", {}, text), hint ? h("p", { class: "muted" }, hint) : null));
  }

  #again() {
    return h("button", { type: "button", class: "again", click: () => this.#does.askAgain(this.question, null) }, "Ask again");
  }

  #offerWeb() {
    if (this.#outgoing === null) return;
    const query = this.#outgoing;
    this.#after.append(h("div", { class: "card consent" },
      h("h3", {}, "The web was not searched"),
      h("p", {}, "This would be sent to the search engine:"),
      h("p", { class: "outgoing", dir: "auto" }, query),
      h("button", { type: "button", click: () => this.#does.askAgain(this.question, "yes") }, "Search the web")));
  }

  #foot(result) {
    const rows = result.context?.length ?? 0;
    const evidence = rows
      ? h("button", { type: "button", class: "link", click: () => this.#does.showEvidence(result) }, `Evidence: ${count(rows, "passage")}`)
      : null;
    const by = result.status === "answered" && result.citations.length ? h("span", { class: "muted" }, writer(result.models?.llm)) : null;
    if (by || evidence) this.#after.append(h("div", { class: "foot" }, by, evidence));
  }
}
