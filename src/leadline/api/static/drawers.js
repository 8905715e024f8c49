/* The two sides of the page. On a wide screen they stand beside the conversation; on a narrow one each slides over it,
   what lies below can't be reached meanwhile, and Escape or a click beside it closes it. */

import { $, h } from "./dom.js";
import { hidePeek } from "./peek.js";

const OVER = { side: matchMedia("(max-width: 820px)"), panel: matchMedia("(max-width: 1180px)") };
const openers = new Map();

/** Opens the right side with a title and what it shows. */
export function openPanel(title, ...content) {
  if (!$("panel").contains(document.activeElement)) openers.set("panel", document.activeElement);
  $("panel-title").textContent = title;
  $("panel").setAttribute("aria-label", title);
  $("panel-body").replaceChildren(...content);
  $("panel-body").scrollTop = 0;
  $("panel").hidden = false;
  closeSide();
  settle();
  $("panel-title").focus({ preventScroll: true });
}

/** What leads back to what the panel shows now, at the same place. */
export function wayBack(title) {
  const [content, top, opener] = [[...$("panel-body").children], $("panel-body").scrollTop, document.activeElement];
  return h("button", { type: "button", class: "link back", click: () => {
    openPanel(title, ...content);
    $("panel-body").scrollTop = top;
    opener.focus({ preventScroll: true });
  } }, `Back to the ${title.toLowerCase()}`);
}

export function closePanel() {
  if ($("panel").hidden) return false;
  // Whoever has gone on to something else stays there.
  const inside = $("panel").contains(document.activeElement) || document.activeElement === document.body;
  $("panel").hidden = true;
  settle();
  if (inside) back("panel");
  return true;
}

export function openSide() {
  openers.set("side", document.activeElement);
  $("side").classList.add("open");
  settle();
  $("side").querySelector("[data-close]").focus();
}

export function closeSide() {
  if (!$("side").classList.contains("open")) return false;
  $("side").classList.remove("open");
  settle();
  back("side");
  return true;
}

/** Makes buttons, the space beside a drawer and the width of the screen do what they should. */
export function startDrawers() {
  $("open-side").addEventListener("click", openSide);
  $("backdrop").addEventListener("click", closeTop);
  document.querySelector("[data-close=side]").addEventListener("click", closeSide);
  document.querySelector("[data-close=panel]").addEventListener("click", closePanel);
  for (const width of Object.values(OVER)) width.addEventListener("change", settle);
  settle();
}

/** Closes what lies on top. True where there was something. */
export const closeTop = () => closeSide() || closePanel();

function settle() {
  const side = OVER.side.matches && $("side").classList.contains("open");
  const panel = OVER.panel.matches && !$("panel").hidden;
  $("open-side").setAttribute("aria-expanded", String(side));
  $("side").inert = OVER.side.matches ? !side : panel;
  $("main").inert = side || panel;
  document.querySelector(".bar").inert = side || panel;
  $("panel").inert = side;
  $("backdrop").hidden = !(side || panel);
}

function back(which) {
  const opener = openers.get(which);
  openers.delete(which);
  if (opener?.isConnected && !opener.closest("[inert]")) opener.focus({ preventScroll: true });
  else $("question").focus({ preventScroll: true });
  hidePeek(); // the focus is back at the mark, its quote was read
}
