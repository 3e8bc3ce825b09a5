// Before anything is drawn: the colours somebody chose, so that no page flashes in others.
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");
  try {
    const theme = localStorage.getItem("hedgerow-theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  } catch { /* Storage is refused: the system's colours it is. */ }
})();
