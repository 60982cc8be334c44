// The token is in a cookie now: it need not stay in the address, nor in the history.
history.replaceState(null, "", location.pathname);
// Keys work without a click first; before the first picture nothing takes them.
const waiting = setInterval(() => {
  if (!document.body?.classList.contains("-first-byte")) return;
  clearInterval(waiting);
  document.querySelector(".xterm-helper-textarea")?.focus();
}, 50);
