// The token is in a cookie now: it need not stay in the address, nor in the history.
history.replaceState(null, "", location.pathname);
// Keys work without a click first.
addEventListener("load", () => setTimeout(() => document.querySelector(".xterm-helper-textarea")?.focus()));
