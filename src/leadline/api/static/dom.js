/* Elements made without markup: text goes in as text only, attributes by name. */

const SVG = "http://www.w3.org/2000/svg";
const ICONS = {
  menu: "M3 5h14M3 10h14M3 15h14",
  close: "M5 5l10 10M15 5L5 15",
  plus: "M10 4v12M4 10h12",
  trash: "M4 6h12M8 6V4h4v2M6 6l1 10h6l1-10M9 9v4M11 9v4",
  light: "M10 6.5a3.5 3.5 0 100 7 3.5 3.5 0 000-7zM10 1.5v2M10 16.5v2M1.5 10h2M16.5 10h2M4 4l1.4 1.4M14.6 14.6L16 16M16 4l-1.4 1.4M5.4 14.6L4 16",
  dark: "M16 11.5A6.5 6.5 0 018.5 4a6.5 6.5 0 107.5 7.5z",
  system: "M3 4h14v9H3zM7 17h6M10 13v4",
};

// Controls, and marks that turn the reading direction: a name with them looks like another name.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

export const $ = (id) => document.getElementById(id);

/** An element. An attribute that is a function listens; true is there without a value; false, null: not there. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) set(element, name, value);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

function set(element, name, value) {
  if (value === false || value === null || value === undefined) return;
  if (typeof value === "function") element.addEventListener(name, value);
  else element.setAttribute(name, value === true ? "" : String(value));
}

/** An element of an SVG picture. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) set(element, name, value);
  element.append(...children);
  return element;
}

/** A picture beside or in place of words; whoever can't see it is told by the words. */
export function icon(name) {
  return svg("svg", { viewBox: "0 0 20 20", "aria-hidden": "true", class: "pic" }, svg("path", { d: ICONS[name] }));
}

/** Puts the pictures into the elements of the page that name one. */
export function drawIcons() {
  for (const element of document.querySelectorAll("[data-icon]")) element.prepend(icon(element.dataset.icon));
}

/** A name on one line, without what can't be seen. */
export const clean = (text) => String(text ?? "").replace(UNSEEN, " ").replace(/\s+/g, " ").trim();

/** A name that keeps its own reading direction among other words. */
export const name = (text) => h("bdi", {}, clean(text) || "unnamed");

/** Where a passage is: file, and page where it has pages. */
export const place = (from) => clean(from.file_name) + (from.page ? `, page ${from.page}` : "");

export const count = (number, one, many = `${one}s`) => `${number} ${number === 1 ? one : many}`;

/** A time as people say it: today's by the clock, others by the day. */
export function when(iso) {
  const time = new Date(iso);
  if (Number.isNaN(time.getTime())) return "";
  const today = time.toDateString() === new Date().toDateString();
  return today
    ? time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })
    : time.toLocaleDateString([], { day: "numeric", month: "short", year: "numeric" });
}

/** An address that a link may lead to, or null. */
export function webAddress(text) {
  try {
    const url = new URL(text);
    return url.protocol === "https:" || url.protocol === "http:" ? url : null;
  } catch {
    return null;
  }
}

/** A link to somebody else's page, which learns nothing of this one. */
export function outward(url, ...children) {
  return h("a", { href: url.href, target: "_blank", rel: "noopener noreferrer nofollow" }, ...children);
}

/** Why a list isn't there, and a button that asks for it again. */
export function trouble(problem, again) {
  return [h("span", { class: "problem" }, problem.message), " ", h("button", { type: "button", class: "link", click: again }, "Try again")];
}

/** Does what draws a list anew, and gives the focus back to the button of the line that had it. */
export function keepingFocus(list, draw) {
  const button = list.contains(document.activeElement) ? document.activeElement : null;
  const key = button && Object.entries(button.closest("li").dataset)[0];
  const at = button && [...button.closest("li").querySelectorAll("button")].indexOf(button);
  draw();
  if (!button) return;
  const line = [...list.children].find((each) => each.dataset[key[0]] === key[1]);
  line?.querySelectorAll("button")[at]?.focus({ preventScroll: true });
}

/** Says something to those who can't see the page, once. */
export function announce(text) {
  $("live").textContent = "";
  requestAnimationFrame(() => { $("live").textContent = text; });
}
