"""Before a screen is loaded: the check for a terminal, and the recorder of the machine."""
