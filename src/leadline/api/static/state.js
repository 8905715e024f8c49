/* What the page is about: who asks, which collection, which conversation. Kept in the address, so that a reload or a
   bookmark leads back. */

const ID_BYTES = 12;

export const state = {
  about: null, // what the server says of itself
  collection: "default",
  thread: null, // null: a new conversation, which gets its id with the first question
};

/** A new id of a conversation. (`crypto.randomUUID` is missing where the page came without TLS.) */
export function newId() {
  return [...crypto.getRandomValues(new Uint8Array(ID_BYTES))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** What the address says. */
export function fromAddress() {
  const said = new URLSearchParams(location.hash.slice(1));
  return { collection: said.get("collection"), thread: said.get("conversation") };
}

/** Puts collection and conversation into the address; `replace`: without a step to go back to. */
export function toAddress({ replace = false } = {}) {
  const words = new URLSearchParams({ collection: state.collection });
  if (state.thread) words.set("conversation", state.thread);
  const hash = `#${words}`;
  if (hash !== location.hash) history[replace ? "replaceState" : "pushState"](null, "", hash);
}

export const mayWrite = () => state.about?.caller?.may_write !== false;
