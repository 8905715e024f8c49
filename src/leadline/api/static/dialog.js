/* One small dialog for what can't be undone, and for a name. */

import { $ } from "./dom.js";
import { Problem } from "./api.js";

/**
 * Asks, and does `action` on yes: the dialog stays open with what went wrong. `field` asks for a text, which `action`
 * is given. True where it was done.
 */
export function confirm({ title, text, yes, danger = false, field = null, action }) {
  const dialog = $("confirm");
  $("confirm-title").textContent = title;
  $("confirm-text").textContent = text;
  $("confirm-yes").textContent = yes;
  $("confirm-yes").classList.toggle("danger", danger);
  $("confirm-problem").hidden = true;
  $("confirm-field").hidden = field === null;
  const input = $("confirm-input");
  input.disabled = field === null;
  input.value = "";
  if (field) {
    $("confirm-field").querySelector("label").textContent = field.label;
    input.required = true;
    input.pattern = field.pattern;
    input.title = field.title;
  }
  return new Promise((resolve) => {
    let done = false;
    const form = dialog.querySelector("form");
    const submitted = async (event) => {
      if (event.submitter?.value !== "yes") return;
      event.preventDefault();
      $("confirm-yes").disabled = true;
      try {
        await action(input.value);
        done = true;
        dialog.close();
      } catch (problem) {
        if (!(problem instanceof Problem)) throw problem;
        $("confirm-problem").textContent = [problem.message, problem.hint].filter(Boolean).join(" ");
        $("confirm-problem").hidden = false;
      } finally {
        $("confirm-yes").disabled = false;
      }
    };
    form.addEventListener("submit", submitted);
    dialog.addEventListener("close", () => {
      form.removeEventListener("submit", submitted);
      resolve(done);
    }, { once: true });
    dialog.showModal();
    if (field) input.focus();
  });
}
