/* Text of answers as elements. What a model or a document says is never trusted: Markdown is turned into few kinds of
   elements, cleaned once more, and marks of sources become buttons. */

import MarkdownIt from "./vendor/markdown-it.min.mjs";
import "./vendor/purify.min.js";
import { clean, h, webAddress } from "./dom.js";

const purify = globalThis.DOMPurify;
// No raw HTML, no images (their address would carry words out), no reference definitions ("[1]: …" would turn marks
// into links of somebody else's choice), nothing made a link by its looks.
const markdown = new MarkdownIt({ html: false, linkify: false, breaks: true }).disable(["image", "reference", "html_block", "html_inline"]);
markdown.validateLink = (url) => webAddress(url) !== null;

const TAGS = [
  "p", "br", "strong", "em", "s", "code", "pre", "blockquote", "ul", "ol", "li", "hr", "a",
  "table", "thead", "tbody", "tr", "th", "td", "h1", "h2", "h3", "h4", "h5", "h6",
];
const MARK = /\[(\d{1,3})\]/g;

/** The elements of a Markdown text. */
export function fromMarkdown(text) {
  const fragment = purify.sanitize(markdown.render(text), {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ["href", "start"],
    ALLOWED_URI_REGEXP: /^https?:\/\//i,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
  for (const link of fragment.querySelectorAll("a")) mendLink(link);
  for (const heading of fragment.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    heading.replaceWith(h("p", { class: "heading" }, ...heading.childNodes)); // the page has headings of its own
  }
  for (const table of fragment.querySelectorAll("table")) {
    const frame = h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Table" });
    table.replaceWith(frame);
    frame.append(table);
  }
  return fragment;
}

function mendLink(link) {
  const url = webAddress(link.getAttribute("href"));
  if (!url) {
    link.replaceWith(...link.childNodes);
    return;
  }
  link.target = "_blank";
  link.rel = "noopener noreferrer nofollow";
  if (!clean(link.textContent).includes(url.host)) link.append(` (${url.host})`); // where it leads is seen before
}

/** The elements of a quoted text: as it stands, paragraphs apart. */
export function fromPlain(text) {
  const fragment = new DocumentFragment();
  for (const part of text.split(/\n{2,}/)) if (part.trim()) fragment.append(h("p", { class: "quoted" }, part));
  return fragment;
}

/** `root` with what `button(n)` makes in place of each mark of a source; null leaves the mark. */
export function withMarks(root, button) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    if (!walker.currentNode.parentElement?.closest("a, code")) found.push(walker.currentNode);
  }
  for (const node of found) replaceMarks(node, button);
  return root;
}

function replaceMarks(node, button) {
  const text = node.data;
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(MARK)) {
    const made = button(Number(match[1]));
    if (!made) continue;
    parts.push(text.slice(end, match.index), made);
    end = match.index + match[0].length;
  }
  if (parts.length) node.replaceWith(...parts, text.slice(end));
}
