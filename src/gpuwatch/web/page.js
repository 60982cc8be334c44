// The token is in a cookie now: it need not stay in the address, nor in the history.
history.replaceState(null, "", location.pathname);
