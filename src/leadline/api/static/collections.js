/* Which collection the page is about. */

import { call } from "./api.js";
import { $, count, h } from "./dom.js";
import { confirm } from "./dialog.js";
import { mayWrite, state } from "./state.js";

const NAME = "[A-Za-z0-9][A-Za-z0-9_\\-]{0,62}";
const fresh = new Set(); // named here; there from the first document on

/** Reads the list anew; the collection of the page is always in it. */
export async function loadCollections() {
  let found = [];
  try {
    found = (await call("/collections")).collections;
  } catch { /* the documents' list says what is wrong */ }
  const known = new Map(found.map((each) => [each.name, each]));
  const caller = state.about.caller;
  const names = [...known.keys(), ...fresh, ...(caller?.collections ?? []), ...(caller?.collections ? [] : [state.collection])];
  $("collection").replaceChildren(...[...new Set(names)].sort().map((each) => option(each, known.get(each))));
  $("collection").value = state.collection;
  $("where").textContent = state.collection;
  $("new-collection").hidden = !(mayWrite() && !caller?.collections);
}

function option(name, known) {
  return h("option", { value: name }, known ? `${name} (${count(known.documents, "document")})` : `${name} (empty)`);
}

/** `choose` is told which one is chosen. */
export function startCollections(choose) {
  $("collection").addEventListener("change", () => choose($("collection").value));
  $("new-collection").addEventListener("click", () => confirm({
    title: "New collection",
    text: "Documents in it are searched apart from all others. It is made when the first one is added.",
    yes: "Use it",
    field: { label: "Name", pattern: NAME, title: "Letters, digits, - and _, at most 63" },
    action: async (name) => {
      fresh.add(name);
      await choose(name);
    },
  }));
}
