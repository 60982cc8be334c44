"""The screens in a browser on this machine, with one process of the program per page."""
