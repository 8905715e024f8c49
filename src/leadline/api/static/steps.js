/* The line of steps above an answer: what is done now, then what was done, each step with its time. It folds. */

import { clean, count, h } from "./dom.js";
import { brief, did, part, seconds, step } from "./words.js";

export class Steps {
  #now = h("span", { class: "now" });
  #list = h("ol", { class: "steps" });
  #open = new Map(); // node → its line, while it works
  #done = 0;
  #again = 0;
  #web = false;
  #began = performance.now();

  constructor() {
    this.element = h("details", { class: "work" }, h("summary", {}, h("span", { class: "dot", "aria-hidden": "true" }), this.#now), this.#list);
    this.element.classList.add("running");
    this.#now.textContent = "Asking…";
  }

  /** What one event adds. */
  take(event) {
    switch (event.type) {
      case "step": return this.#step(event);
      case "retry": return this.#retry(event);
      case "escalate": return this.#aside("Goes to the web", event.reason);
      case "query": return event.target === "web" ? this.#sent(event.query) : undefined;
      case "retract": return this.#aside("Draft withdrawn", event.reason);
      case "degraded": return this.#aside(`Without ${part(event.part)}`, event.reason);
      default: return undefined;
    }
  }

  /** No more comes. `spent` are the seconds that the server counted; `ending` says how it ended, where not well. */
  end({ spent, ending } = {}) {
    this.element.classList.remove("running");
    if (!this.#list.childElementCount) this.element.hidden = true; // nothing began, and what is said below says why
    for (const line of this.#open.values()) line.append(h("span", { class: "muted" }, " not finished"));
    this.#open.clear();
    const told = [ending ?? count(this.#done, "step")];
    if (this.#again) told.push(this.#again === 1 ? "looked again once" : `looked again ${this.#again} times`);
    if (this.#web) told.push("searched the web");
    told.push(seconds(spent ?? (performance.now() - this.#began) / 1000));
    this.#now.textContent = told.join(" · ");
  }

  /** What is being done, in words. */
  get now() {
    return this.#now.textContent;
  }

  #step({ node, phase, seconds: spent, details }) {
    if (phase === "start") {
      const line = h("li", {}, h("span", { class: "what" }, step(node)), h("code", { class: "node" }, clean(node)));
      this.#open.set(node, line);
      this.#list.append(line);
      this.#now.textContent = `${step(node)}…`;
      return;
    }
    const line = this.#open.get(node) ?? this.#list.appendChild(h("li", {}, h("span", { class: "what" }, step(node))));
    this.#open.delete(node);
    this.#done += 1;
    const ending = phase === "skip" ? "left out" : phase === "error" ? "failed" : "";
    line.append(h("span", { class: "time" }, brief(spent)));
    const told = [ending, did(node, details ?? {})].filter(Boolean).join(": ");
    if (told) line.append(h("span", { class: "told" }, told));
  }

  #retry({ query, reason }) {
    this.#again += 1;
    this.#aside("Looks again", `${reason} Now for “${query}”.`);
  }

  #sent(query) {
    this.#web = true;
    this.#aside("Sent to the web search", `“${query}”`);
  }

  #aside(what, why) {
    this.#list.append(h("li", { class: "aside" }, h("span", { class: "what" }, what), h("span", { class: "told" }, clean(why))));
  }
}
