/* One small dialog for what can't be undone, and for a name. */

import { $ } from "./dom.js";
import { Problem } from "./api.js";

const busy = (on) => { for (const id of ["confirm-yes", "confirm-no"]) $(id).disabled = on; };

/** Once, at the start: Cancel closes it; while it does what was asked for, nothing does. */
export function startDialog() {
  $("confirm-no").addEventListener("click", () => $("confirm").close());
  $("confirm").addEventListener("cancel", (event) => { if ($("confirm-no").disabled) event.preventDefault(); });
}

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
    let doing = null;
    const form = dialog.querySelector("form");
    const perform = async () => {
      busy(true);
      try {
        await action(input.value);
        done = true;
        dialog.close();
      } catch (problem) {
        if (!(problem instanceof Problem)) throw problem;
        $("confirm-problem").textContent = [problem.message, problem.hint].filter(Boolean).join(" ");
        $("confirm-problem").hidden = false;
      } finally {
        busy(false);
        if (dialog.open) $("confirm-yes").focus(); // a button that is switched off loses it
      }
    };
    const submitted = (event) => {
      event.preventDefault();
      doing = perform();
    };
    form.addEventListener("submit", submitted);
    dialog.addEventListener("close", async () => {
      form.removeEventListener("submit", submitted);
      await doing; // a browser closes it at a second Escape, whatever is being done
      resolve(done);
    }, { once: true });
    dialog.showModal();
    if (field) input.focus();
  });
}
