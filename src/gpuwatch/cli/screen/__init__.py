"""Before a screen is loaded: is there a terminal, and its first lines."""
