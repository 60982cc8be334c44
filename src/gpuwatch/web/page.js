// The secret stands behind the #, which no browser sends to a server. This script alone has it from here
// on: it is taken out of the address and the tab's history, and is in no cookie and no storage. So it is gone
// when the page is loaded again.
{
  const secret = location.hash.slice(1);
  history.replaceState(null, "", location.pathname + location.search);
  // Another address of the same page was pasted.
  addEventListener("hashchange", () => location.reload());

  let why;
  // The emulator opens the socket; whoever adds the first listener sends the first message.
  window.WebSocket = class extends WebSocket {
    constructor(url) {
      super(url);
      this.addEventListener("open", () => this.send(secret));
      this.addEventListener("close", event => {
        document.querySelector("#why").textContent = event.reason || why;
      });
    }
  };

  const begin = () => {
    // Keys work without a click first; before the first picture nothing takes them.
    const waiting = setInterval(() => {
      if (!document.body.classList.contains("-first-byte")) return;
      clearInterval(waiting);
      document.querySelector(".xterm-helper-textarea")?.focus();
    }, 50);
  };

  addEventListener("DOMContentLoaded", () => {
    why = document.querySelector("#why").textContent;
    begin();
    document.querySelector("#again").addEventListener("click", () => {
      document.querySelector("#terminal").replaceChildren();
      document.body.className = "";
      begin();
      dispatchEvent(new Event("load")); // on which the emulator starts
    });
  });
}
