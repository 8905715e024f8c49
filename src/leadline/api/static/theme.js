/* Light or dark, before anything is drawn: loaded in the head, and so not a module. */
"use strict";

(() => {
  const KEY = "leadline-theme";
  const kept = () => {
    try { return localStorage.getItem(KEY); } catch { return null; } // storage may be forbidden
  };
  const theme = kept();
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
