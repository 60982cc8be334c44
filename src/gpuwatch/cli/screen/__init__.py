"""Before a screen is loaded: the check for a terminal."""
