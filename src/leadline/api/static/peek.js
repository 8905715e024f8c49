/* The quote behind a mark, shown beside it while a pointer or the focus is there. Escape hides it. */

import { $, clean, h, name, place, webAddress, when } from "./dom.js";

const AWAY_MS = 200; // time to move the pointer onto it
let leaving = 0;
let at = null; // the mark whose quote is shown

/** Shows the quote of `citation` at `button`. */
export function peekAt(button, citation) {
  button.addEventListener("pointerenter", (event) => { if (event.pointerType !== "touch") show(button, citation); });
  button.addEventListener("focus", () => { if (button.matches(":focus-visible")) show(button, citation); });
  button.addEventListener("pointerleave", leave);
  button.addEventListener("blur", hidePeek);
  button.addEventListener("click", hidePeek);
}

/** Takes it away. True where it was there. */
export function hidePeek() {
  clearTimeout(leaving);
  const was = !$("peek").hidden;
  $("peek").hidden = true;
  at?.removeAttribute("aria-describedby");
  at = null;
  return was;
}

export function startPeek() {
  $("peek").addEventListener("pointerenter", () => clearTimeout(leaving));
  $("peek").addEventListener("pointerleave", leave);
  $("scroll").addEventListener("scroll", hidePeek, { passive: true });
}

function leave() {
  clearTimeout(leaving);
  leaving = setTimeout(hidePeek, AWAY_MS);
}

function show(button, citation) {
  hidePeek();
  at = button;
  const card = $("peek");
  const url = citation.source_type === "web" ? webAddress(citation.url) : null;
  const from = url ? `${url.host}, read ${when(citation.retrieved_at) || "earlier"}` : "";
  card.replaceChildren(
    h("p", { class: "from" }, name(place(citation)), from ? h("span", { class: "muted" }, ` ${from}`) : null),
    h("p", { class: "quote", dir: "auto" }, clean(citation.quote)),
    citation.verified ? "" : h("p", { class: "muted" }, "Not verified"),
  );
  card.hidden = false;
  button.setAttribute("aria-describedby", card.id);
  const mark = button.getBoundingClientRect();
  const left = Math.max(8, Math.min(mark.left, innerWidth - card.offsetWidth - 8));
  const below = mark.bottom + 6;
  const top = below + card.offsetHeight > innerHeight ? Math.max(8, mark.top - card.offsetHeight - 6) : below;
  card.style.left = `${left}px`; // set by the object model, which the policy against inline styles allows
  card.style.top = `${top}px`;
}
