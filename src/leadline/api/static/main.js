/* Starts the page: who asks, then everything else. */

import { call, hasToken, useToken } from "./api.js";
import { loadCollections, startCollections } from "./collections.js";
import { greet, leaveThread, openThread, startConversation } from "./conversation.js";
import { startDialog } from "./dialog.js";
import { $, drawIcons, h, icon } from "./dom.js";
import { loadDocuments } from "./documents.js";
import { closePanel, closeSide, closeTop, startDrawers } from "./drawers.js";
import { hidePeek, startPeek } from "./peek.js";
import { fromAddress, mayWrite, state, toAddress } from "./state.js";
import { loadThreads, startThreads } from "./threads.js";
import { loadJobs, startUploads } from "./uploads.js";

const THEMES = ["system", "light", "dark"];

function startTheme() {
  const button = $("theme");
  const show = (theme) => {
    button.replaceChildren(icon(theme));
    button.setAttribute("aria-label", `Colours: ${theme === "system" ? "as the system has them" : theme}`);
    button.title = button.getAttribute("aria-label");
  };
  show(document.documentElement.dataset.theme ?? "system");
  button.addEventListener("click", () => {
    const now = document.documentElement.dataset.theme ?? "system";
    const next = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length];
    if (next === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    try { localStorage.setItem("leadline-theme", next); } catch { /* not kept then */ }
    show(next);
  });
}

function askToken(problem) {
  if (!problem && !$("token-form").hidden) return; // asked already, by an answer to something sent before
  document.querySelector(".unreachable")?.remove();
  if ($("confirm").open) $("confirm").close();
  $("app").hidden = true;
  $("token-form").hidden = false;
  $("token-problem").hidden = !problem;
  $("token-problem").textContent = problem ?? "";
  $("token").value = "";
  $("token").focus();
}

function startToken() {
  $("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    useToken($("token").value.trim());
    enter();
  });
  document.addEventListener("token-refused", () => {
    const had = hasToken();
    useToken(null);
    askToken(had ? "The server does not know this token." : null);
  });
  $("forget-token").addEventListener("click", () => {
    useToken(null);
    location.replace(location.pathname);
  });
}

/** Learns who asks, and shows what they may see. */
async function enter() {
  let about;
  try {
    about = await call("/about");
  } catch (problem) {
    if (problem.status !== 401) unreachable(problem);
    return;
  }
  if (about.token_needed && !about.caller) {
    askToken(hasToken() ? "The server does not know this token." : null);
    return;
  }
  state.about = about;
  $("token-form").hidden = true;
  $("app").hidden = false;
  $("forget-token").hidden = !hasToken();
  $("add-files").hidden = !mayWrite();
  composerFor(about);
  await shown();
}

/** The settings that the server leaves to whoever asks. */
function composerFor(about) {
  const web = $("web");
  web.value = about.web ?? "auto";
  web.disabled = about.web_consent === "no" || about.web === "never"; // what it never does it doesn't do at our word
  if (web.disabled) web.value = "never";
  web.title = web.disabled ? "This server does not search the web." : "";
  const models = about.llms ?? [];
  $("llm-choice").hidden = models.length === 0;
  $("llm").replaceChildren(h("option", { value: "" }, about.llm ?? "quotation"),
    ...models.filter((model) => model !== about.llm).map((model) => h("option", { value: model }, model)));
}

function unreachable(problem) {
  document.querySelector(".unreachable")?.remove();
  $("token-form").hidden = true;
  const again = h("button", { type: "button", class: "primary", click: () => { location.reload(); } }, "Try again");
  document.body.append(h("main", { class: "card token unreachable" }, h("h1", {}, "Leadline"), h("p", { class: "problem", role: "alert" }, problem.message), h("p", {}, problem.hint), again));
}

/** Shows the collection and the conversation that the address names. What runs in another one is given up. */
async function shown() {
  const { collection, thread } = fromAddress();
  const { about } = state;
  const seen = about.caller?.collections;
  state.collection = collection ?? about.collection ?? "default";
  if (seen && !seen.includes(state.collection)) state.collection = seen[0] ?? state.collection;
  state.thread = thread;
  toAddress({ replace: true });
  if (!thread) leaveThread();
  await everything();
}

async function choose(collection) {
  state.collection = collection;
  leaveThread();
  await everything();
}

async function everything() {
  await Promise.all([lists(), state.thread ? openThread(state.thread) : null]);
  greet();
}

const lists = () => Promise.all([loadCollections(), loadDocuments(), loadJobs(), loadThreads()]);

function startAddress() {
  addEventListener("popstate", () => { if (state.about) { closeSide(); shown(); } });
  document.addEventListener("collection-changed", lists);
  // Not followed: the address names collection and conversation, and nothing else.
  document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); $("question").focus(); });
}

drawIcons();
startTheme();
startToken();
startDrawers();
startPeek();
startConversation();
startUploads();
startCollections(choose);
startThreads({ open: (id) => { closeSide(); openThread(id); }, closed: leaveThread });
startDialog();
startAddress();
document.addEventListener("documents-changed", () => { greet(); loadCollections(); });
document.addEventListener("document-deleted", () => {
  closePanel(); // what stands there may be of it
  if (state.thread) openThread(state.thread);
  loadThreads();
});
addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || $("confirm").open) return;
  if (hidePeek() || closeTop()) event.preventDefault();
});
enter();
